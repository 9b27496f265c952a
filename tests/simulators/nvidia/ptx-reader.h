/* SPDX-License-Identifier: MIT
 *
 * ptx-reader.h: the words of a PTX text, and names that are known at a place of it. */
#pragma once

#include "ptx-program.h"

typedef enum {
  PTX_TOKEN_END,
  PTX_TOKEN_WORD,
  PTX_TOKEN_NUMBER,
  PTX_TOKEN_STRING,
  PTX_TOKEN_SIGN
} PtxTokenKind;

typedef struct {
  PtxTokenKind kind;
  const char *text; /* not ended by NUL */
  gsize n_chars;
  char sign;
  guint32 line;
  guint64 bits; /* of a number: an integer, or the bits of a double */
  enum { PTX_INTEGER, PTX_SINGLE, PTX_DOUBLE } number;
} PtxToken;

typedef enum { PTX_NAME_REGISTER, PTX_NAME_VALUE, PTX_NAME_ENTRY } PtxNameKind;

/* A register, a symbol's value, or a register that is filled when the function is entered. */
typedef struct {
  PtxNameKind kind;
  guint32 index;
  guint16 bits;
  guint8 space;
  guint64 value;
  guint32 n_bytes;
} PtxName;

typedef struct {
  PtxModule *module;
  const char *at, *end;
  guint32 line;
  PtxToken token; /* the next one */
  PtxFunction *function;
  GPtrArray *
      scopes; /* tables of PtxName by name, the innermost last; "name<n>" is one under its prefix */
  GArray *labels; /* of PtxLabel, in the function */
  char *error;    /* the first; after it only ends are read */
} PtxReader;

typedef struct {
  const char *name;
  guint32 place;
} PtxLabel;

enum {
  PTX_MAX_REGISTERS = 1 << 16,
  PTX_MAX_BYTES = 1 << 20,
  PTX_MAX_VARIABLE = 1 << 28,
  PTX_MAX_DEPTH = 64
};

/* Keeps the first error, with the line of the token that is next. */
G_GNUC_PRINTF (2, 3) void ptx_reader_fail (PtxReader *reader, const char *format, ...);
void ptx_reader_next (PtxReader *reader);
gboolean ptx_reader_is_sign (const PtxReader *reader, char sign);
gboolean ptx_reader_is_word (const PtxReader *reader, const char *word);
/* Goes past what is next if it is that. */
gboolean ptx_reader_take_sign (PtxReader *reader, char sign);
gboolean ptx_reader_take_word (PtxReader *reader, const char *word);
/* Fails where it is not. */
void ptx_reader_want (PtxReader *reader, char sign);
/* A word that is not ended by a sign, kept with the module; "" with an error. */
const char *ptx_reader_want_word (PtxReader *reader, const char *what);
/* An integer of at most @most, with an error where it is not. */
guint64 ptx_reader_want_integer (PtxReader *reader, const char *what, guint64 most);

/* ---- names ---- */
void ptx_reader_open_scope (PtxReader *reader);
void ptx_reader_close_scope (PtxReader *reader);
void ptx_reader_name (PtxReader *reader, const char *name, const PtxName *what);
/* FALSE where no scope has it. Special registers are found in the function's. */
gboolean
ptx_reader_find (PtxReader *reader, const char *name, gsize n_chars, PtxName *out_name);
/* A register that holds @what of the thread when the function is entered. */
guint32 ptx_reader_entry (PtxReader *reader, PtxEntry what, guint dimension, guint64 value);

/* .reg …; after the word ".reg" */
void ptx_read_registers (PtxReader *reader);
/* The instruction, label or scope that is next. */
void ptx_read_statement (PtxReader *reader);
/* A variable of @space after its word. */
void ptx_read_variable (PtxReader *reader, guint8 space, gboolean is_extern);
/* A body from '{' to '}' of reader->function. */
void ptx_read_body (PtxReader *reader);
/* A function, made when it is first named. */
PtxFunction *ptx_reader_function (PtxReader *reader, const char *name);
