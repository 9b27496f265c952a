# SPDX-License-Identifier: MIT
# dh --with tinycore-plugin: dh_tinycore_plugin runs once the files are in their packages.
use strict;
use warnings;
use Debian::Debhelper::Dh_Lib;

insert_before("dh_shlibdeps", "dh_tinycore_plugin");

1;
