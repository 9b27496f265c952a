/* SPDX-License-Identifier: MIT
 *
 * cpu-llvm.c: the LLVM renderer: linear program to object file, in process.
 *
 * libLLVM is opened at the first compile and kept; any version from 15 on serves. Each compile has
 * its own context and module, and a target machine to itself, so threads compile at once without a
 * lock. The core has already vectorised, unrolled and hoisted what should be, so a very short list
 * of passes runs instead of LLVM's own O2, which costs many times more and finds nothing. */
#include "cpu-lapack.h"
#include "cpu-llvm.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const triples[CPU_N_ARCHS]
    = { [CPU_ARCH_X86_64] = "x86_64-unknown-linux-gnu",
        [CPU_ARCH_AARCH64] = "aarch64-unknown-linux-gnu" };
static const char *const base_processors[CPU_N_ARCHS]
    = { [CPU_ARCH_X86_64] = "x86-64", [CPU_ARCH_AARCH64] = "generic" };
static const char *const target_names[] = { "X86", "AArch64" };

/* What the core leaves to do: registers for what emitting keeps in memory, addresses that two
 * accesses share, the parts of them that do not change in a loop. Each further pass of LLVM's was
 * measured to cost time and to change nothing, but one: conversions meet their inverses, and
 * arithmetic between them becomes narrow, in instcombine only. (From LLVM 18 on the plain one checks
 * itself and aborts.) */
static const char passes_before[] = "sroa,early-cse";
static const char *const pass_convert[2]
    = { ",instcombine", ",instcombine<no-verify-fixpoint>" };
static const char pass_loops[] = ",loop-mssa(licm)";

/* That one takes, of each instruction that it moves, all that follows from it: seconds in a program of one long chain, such
 * as a hundred sines of one number, and nothing that would be seen in a body so long. */
enum { MOST_FOR_LOOPS = 4096 };

/* ---- opening the library ---- */

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static Llvm opened;
static void *library;

static void *
open_library (void)
{
  const char *wanted = tiny_getenv ("TINY_LLVM_LIBRARY");
  if (wanted != NULL)
    return dlopen (wanted, RTLD_LAZY | RTLD_LOCAL);
  static const char *const patterns[] = { "libLLVM.so.%d.1",
                                          "libLLVM-%d.so.1",
                                          "libLLVM-%d.so",
                                          "libLLVM.so.%d",
                                          "/usr/lib/llvm-%d/lib/libLLVM.so.1",
                                          "/usr/lib/llvm-%d/lib/libLLVM.so" };
  /* 19 first: it is what the pass list was tuned with. */
  static const int versions[] = { 19, 20, 21, 22, 18, 17, 16, 15 };
  for (unsigned v = 0; v < CPU_ARRAY_SIZE (versions); v++) {
    for (unsigned p = 0; p < CPU_ARRAY_SIZE (patterns); p++) {
      char name[64];
      snprintf (name, sizeof name, patterns[p], versions[v]);
      void *handle = dlopen (name, RTLD_LAZY | RTLD_LOCAL);
      if (handle != NULL)
        return handle;
    }
  }
  return dlopen ("libLLVM.so", RTLD_LAZY | RTLD_LOCAL);
}

static TinyStatus
resolve_symbols (void *handle, Llvm *llvm, TinyPluginError *error)
{
  static const struct {
    const char *name;
    size_t offset;
  } symbols[] = {
#define LLVM_SYMBOL(result, name, params) { "LLVM" #name, offsetof (Llvm, name) },
#include "cpu-llvm-symbols.def"
#undef LLVM_SYMBOL
  };
  const char *wanted = tiny_getenv ("TINY_LLVM_LIBRARY");
  for (unsigned i = 0; i < CPU_ARRAY_SIZE (symbols); i++) {
    void *address = dlsym (handle, symbols[i].name);
    if (address == NULL)
      return tiny_fail (error, TINY_STATUS_DRIVER,
                        "%s%.200s has no %s: it is no libLLVM, or one older than 15",
                        wanted != NULL ? "TINY_LLVM_LIBRARY=" : "this libLLVM",
                        wanted != NULL ? wanted : "", symbols[i].name);
    memcpy ((char *) llvm + symbols[i].offset, &address, sizeof address);
  }
  /* Only known since 16. */
  void (*get_version) (unsigned *, unsigned *, unsigned *);
  *(void **) &get_version = dlsym (handle, "LLVMGetVersion");
  unsigned minor, patch;
  llvm->version = 15;
  if (get_version != NULL)
    get_version (&llvm->version, &minor, &patch);
  return TINY_STATUS_OK;
}

static void
initialize_targets (void *handle)
{
  static const char *const parts[]
      = { "TargetInfo", "Target", "TargetMC", "AsmPrinter", "AsmParser", "Disassembler" };
  for (unsigned t = 0; t < CPU_ARRAY_SIZE (target_names); t++) {
    for (unsigned p = 0; p < CPU_ARRAY_SIZE (parts); p++) {
      char name[64];
      snprintf (name, sizeof name, "LLVMInitialize%s%s", target_names[t], parts[p]);
      void (*initialize) (void);
      *(void **) &initialize = dlsym (handle, name);
      if (initialize != NULL)
        initialize ();
    }
  }
}

/* Where LLVM goes when it would end the process; it does so where its own code generator is at a
 * loss. What it held by then is lost to the process, which goes on. */
typedef struct {
  jmp_buf place;
  char reason[256];
} Escape;

static _Thread_local Escape *escape;

static void
on_fatal_error (const char *reason)
{
  if (escape == NULL)
    return; /* someone else's use of the library: it ends as it would */
  snprintf (escape->reason, sizeof escape->reason, "%s", reason);
  escape->reason[strcspn (escape->reason, "\n")] = '\0';
  longjmp (escape->place, 1);
}

/* The library, opened once; a failure is tried again at the next call. */
static TinyStatus
get_llvm (const Llvm **out, TinyPluginError *error)
{
  TinyStatus status = TINY_STATUS_OK;
  pthread_mutex_lock (&open_lock);
  if (library == NULL) {
    void *handle = open_library ();
    if (handle == NULL) {
      status = tiny_fail (error, TINY_STATUS_DRIVER,
                          "no LLVM library of version 15 or later: %s", dlerror ());
      tiny_hint (status, error, "install libllvm19, or name the library in TINY_LLVM_LIBRARY");
    } else if ((status = resolve_symbols (handle, &opened, error)) != TINY_STATUS_OK) {
      dlclose (handle);
    } else {
      initialize_targets (handle);
      opened.InstallFatalErrorHandler (on_fatal_error);
      library = handle;
    }
  }
  pthread_mutex_unlock (&open_lock);
  *out = &opened;
  return status;
}

/* ---- compiling ---- */

static void
features_to_string (const CpuArch *arch, char *out, size_t size)
{
  size_t used = 0;
  out[0] = '\0';
  for (unsigned i = 0; i < CPU_N_FEATURES; i++) {
    const char *feature = cpu_arch_llvm_feature (arch, i);
    if (feature != NULL && used + strlen (feature) + 3 < size)
      used
          += (size_t) snprintf (out + used, size - used, "%s+%s", used > 0 ? "," : "", feature);
  }
}

/* Keeps LLVM from printing: errors are kept for the report, the rest is dropped. */
typedef struct {
  const Llvm *llvm;
  char text[512];
} Diagnostics;

static void
on_diagnostic (LlvmRef info, void *data)
{
  Diagnostics *diagnostics = data;
  if (diagnostics->llvm->GetDiagInfoSeverity (info) != 0)
    return;
  char *text = diagnostics->llvm->GetDiagInfoDescription (info);
  snprintf (diagnostics->text, sizeof diagnostics->text, "%s", text);
  diagnostics->llvm->DisposeMessage (text);
}

static TinyStatus
create_machine (const Llvm *llvm, const CpuArch *arch, LlvmRef *out, TinyPluginError *error)
{
  LlvmRef target = NULL;
  char *message = NULL;
  if (llvm->GetTargetFromTriple (triples[arch->kind], &target, &message)) {
    TinyStatus status = tiny_fail (error, TINY_STATUS_UNSUPPORTED, "LLVM: %s", message);
    llvm->DisposeMessage (message);
    return status;
  }
  char features[1024];
  features_to_string (arch, features, sizeof features);
  const int level_default = 2, relocation_pic = 2, code_model_small = 3;
  *out = llvm->CreateTargetMachine (target, triples[arch->kind], base_processors[arch->kind],
                                    features, level_default, relocation_pic, code_model_small);
  if (*out == NULL)
    return tiny_fail (error, TINY_STATUS_INTERNAL, "LLVM has no target machine for %s",
                      triples[arch->kind]);
  return TINY_STATUS_OK;
}

/* Making a machine means reading the tables of processors and features, and again at its first
 * function: as much as compiling a small kernel. So those that are not in use are kept. */
enum { MAX_IDLE_MACHINES = 16 };

static pthread_mutex_t machines_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  CpuArch arch;
  LlvmRef machine;
} idle_machines[MAX_IDLE_MACHINES];
static unsigned n_idle_machines;

static TinyStatus
take_machine (const Llvm *llvm, const CpuArch *arch, LlvmRef *out, TinyPluginError *error)
{
  *out = NULL;
  pthread_mutex_lock (&machines_lock);
  for (unsigned i = 0; i < n_idle_machines && *out == NULL; i++)
    if (idle_machines[i].arch.kind == arch->kind
        && idle_machines[i].arch.features == arch->features) {
      *out = idle_machines[i].machine;
      idle_machines[i] = idle_machines[--n_idle_machines];
    }
  pthread_mutex_unlock (&machines_lock);
  return *out != NULL ? TINY_STATUS_OK : create_machine (llvm, arch, out, error);
}

static void
give_machine (const Llvm *llvm, const CpuArch *arch, LlvmRef machine)
{
  pthread_mutex_lock (&machines_lock);
  int has_room = n_idle_machines < MAX_IDLE_MACHINES;
  if (has_room) {
    idle_machines[n_idle_machines].arch = *arch;
    idle_machines[n_idle_machines++].machine = machine;
  }
  pthread_mutex_unlock (&machines_lock);
  if (!has_room)
    llvm->DisposeTargetMachine (machine);
}

void
cpu_llvm_finish (void)
{
  pthread_mutex_lock (&machines_lock);
  while (n_idle_machines > 0)
    opened.DisposeTargetMachine (idle_machines[--n_idle_machines].machine);
  pthread_mutex_unlock (&machines_lock);
}

static int
converts (const TinyLinear *linear)
{
  for (uint32_t i = 0; i < linear->n_instrs; i++)
    if (linear->instrs[i].op == TINY_INSTR_CAST || linear->instrs[i].op == TINY_INSTR_BITCAST)
      return 1;
  return 0;
}

static TinyStatus
run_passes (const Llvm *llvm,
            LlvmRef module,
            LlvmRef machine,
            const TinyLinear *linear,
            TinyPluginError *error)
{
  const char *passes = tiny_getenv ("TINY_LLVM_PASSES");
  char own[128];
  snprintf (own, sizeof own, "function(%s%s%s)", passes_before,
            converts (linear) ? pass_convert[llvm->version >= 18] : "",
            linear->n_instrs <= MOST_FOR_LOOPS ? pass_loops : "");
  const bool is_own = passes == NULL;
  if (is_own)
    passes = own;
  LlvmRef options = llvm->CreatePassBuilderOptions ();
  LlvmRef failure = llvm->RunPasses (module, passes, machine, options);
  llvm->DisposePassBuilderOptions (options);
  if (failure == NULL)
    return TINY_STATUS_OK;
  char *message = llvm->GetErrorMessage (failure);
  tiny_fail (error, TINY_STATUS_COMPILE, "%s%.200s: LLVM %u passes: %s",
             is_own ? "" : "TINY_LLVM_PASSES=", passes, llvm->version, message);
  llvm->DisposeErrorMessage (message);
  return TINY_STATUS_COMPILE;
}

/* The object's bytes, copied into the core's memory. */
static TinyStatus
emit_object (const Llvm *llvm,
             LlvmRef module,
             LlvmRef machine,
             void **out_data,
             uint64_t *out_size,
             TinyPluginError *error)
{
  LlvmRef buffer = NULL;
  char *message = NULL;
  if (llvm->TargetMachineEmitToMemoryBuffer (machine, module, 1, &message, &buffer)) {
    tiny_fail (error, TINY_STATUS_COMPILE, "LLVM: %s", message);
    llvm->DisposeMessage (message);
    return TINY_STATUS_COMPILE;
  }
  TinyStatus status = TINY_STATUS_OK;
  *out_size = llvm->GetBufferSize (buffer);
  *out_data = cpu_host->alloc (*out_size);
  if (*out_data != NULL)
    memcpy (*out_data, llvm->GetBufferStart (buffer), *out_size);
  else
    status
        = tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory for an object of %llu bytes",
                     (unsigned long long) *out_size);
  llvm->DisposeMemoryBuffer (buffer);
  return status;
}

static TinyStatus
compile_module (const Llvm *llvm,
                LlvmRef context,
                LlvmRef module,
                LlvmRef machine,
                const TinyCompileArgs *args,
                const CpuArch *arch,
                TinyPluginError *error)
{
  LlvmRef layout = llvm->CreateTargetDataLayout (machine);
  llvm->SetModuleDataLayout (module, layout);
  llvm->DisposeTargetData (layout);
  llvm->SetTarget (module, triples[arch->kind]);
  TinyStatus status
      = cpu_llvm_emit (llvm, context, module, args->linear, args->name, arch, error);
  if (status != TINY_STATUS_OK)
    return status;
  char *message = NULL;
  const int return_status = 2;
  if (llvm->VerifyModule (module, return_status, &message))
    status = tiny_fail (error, TINY_STATUS_COMPILE, "%s: LLVM refuses its code: %s", args->name,
                        message);
  llvm->DisposeMessage (message);
  return status != TINY_STATUS_OK ? status
                                  : run_passes (llvm, module, machine, args->linear, error);
}

static TinyStatus
compile_for (const Llvm *llvm,
             const TinyCompileArgs *args,
             const CpuArch *arch,
             void **out_data,
             uint64_t *out_size,
             TinyPluginError *error)
{
  LlvmRef machine;
  TinyStatus status = take_machine (llvm, arch, &machine, error);
  if (status != TINY_STATUS_OK)
    return status;
  Diagnostics diagnostics = { llvm, "" };
  LlvmRef context = llvm->ContextCreate ();
  llvm->ContextSetDiagnosticHandler (context, on_diagnostic, &diagnostics);
  LlvmRef module = llvm->ModuleCreateWithNameInContext (args->name, context);
  status = compile_module (llvm, context, module, machine, args, arch, error);
  if (status == TINY_STATUS_OK)
    status = emit_object (llvm, module, machine, out_data, out_size, error);
  if (status == TINY_STATUS_OK && diagnostics.text[0] != '\0') {
    status
        = tiny_fail (error, TINY_STATUS_COMPILE, "%s: LLVM: %s", args->name, diagnostics.text);
    cpu_host->free (*out_data);
    *out_data = NULL;
  }
  llvm->DisposeModule (module);
  llvm->ContextDispose (context);
  give_machine (llvm, arch, machine);
  return status;
}

TinyStatus
cpu_llvm_compile (const TinyCompileArgs *args,
                  void **out_data,
                  uint64_t *out_size,
                  TinyPluginError *error)
{
  TINY_TRY (TINY_CHECK_IN (args, 0, error));
  if (args->operation != NULL)
    return cpu_lapack_compile (args, out_data, out_size, error);
  TINY_TRY (TINY_CHECK_IN (args->linear, 0, error));
  if (args->name == NULL)
    return tiny_fail (error, TINY_STATUS_INVALID, "compile: no linear program");
  CpuArch arch;
  const Llvm *llvm;
  TinyStatus status = cpu_arch_parse (args->arch, &arch, error);
  if (status != TINY_STATUS_OK || (status = get_llvm (&llvm, error)) != TINY_STATUS_OK)
    return status;
  Escape here;
  escape = &here;
  if (setjmp (here.place) == 0) {
    status = compile_for (llvm, args, &arch, out_data, out_size, error);
  } else {
    status = tiny_fail (error, TINY_STATUS_COMPILE, "%s: LLVM: %s", args->name, here.reason);
    /* LLVM 15 cannot select some broadcasts of 16 bits with this feature; few kernels gain by it. */
    if ((arch.features & CPU_BIT (AVX512FP16)) != 0 && setjmp (here.place) == 0) {
      arch.features &= ~CPU_BIT (AVX512FP16);
      status = compile_for (llvm, args, &arch, out_data, out_size, error);
    }
  }
  escape = NULL;
  return status;
}

/* ---- disassembling ---- */

typedef struct {
  const Llvm *llvm;
  LlvmRef disassembler;
  char *text; /* malloc */
  size_t used, size;
  bool is_cut; /* there was no memory for all lines */
} Listing;

static void
append_line (Listing *listing, const char *line)
{
  size_t n = strlen (line);
  if (listing->used + n + 2 > listing->size) {
    size_t size = (listing->size + n) * 2 + 4096;
    char *text = realloc (listing->text, size);
    if (text == NULL) {
      listing->is_cut = true;
      return;
    }
    listing->text = text;
    listing->size = size;
  }
  memcpy (listing->text + listing->used, line, n);
  listing->used += n;
  listing->text[listing->used++] = '\n';
  listing->text[listing->used] = '\0';
}

static void
list_section (const char *name, const uint8_t *code, uint64_t n_bytes, void *user_data)
{
  Listing *listing = user_data;
  char line[320];
  snprintf (line, sizeof line, "%s:", name);
  append_line (listing, line);
  for (uint64_t at = 0; at < n_bytes;) {
    char text[256] = "";
    size_t n = listing->llvm->DisasmInstruction (listing->disassembler, (uint8_t *) code + at,
                                                 n_bytes - at, at, text, sizeof text);
    snprintf (line, sizeof line, "%6llx %s", (unsigned long long) at, n > 0 ? text : "\t?");
    append_line (listing, line);
    at += n > 0 ? n : 1;
  }
}

TinyStatus
cpu_llvm_disassemble (const void *data, uint64_t size, char **out_text, TinyPluginError *error)
{
  enum { ELF_MACHINE_AARCH64 = 183, OPTION_PRINT_IMM_HEX = 2, OPTION_ASM_VARIANT = 4 };
  Listing listing = { 0 };
  uint16_t machine = 0;
  TinyStatus status = get_llvm (&listing.llvm, error);
  if (status == TINY_STATUS_OK)
    status = cpu_object_for_each_code (data, size, &machine, NULL, NULL, error);
  if (status != TINY_STATUS_OK)
    return status;

  /* Every extension that there is: the object says not which it uses. */
  CpuArch all = { machine == ELF_MACHINE_AARCH64 ? CPU_ARCH_AARCH64 : CPU_ARCH_X86_64, 0 };
  char features[1024];
  cpu_arch_parse (all.kind == CPU_ARCH_AARCH64 ? "aarch64,neoverse-n2"
                                               : "x86_64,sapphirerapids",
                  &all, error);
  features_to_string (&all, features, sizeof features);
  listing.disassembler = listing.llvm->CreateDisasmCPUFeatures (
      triples[all.kind], base_processors[all.kind], features, NULL, 0, NULL, NULL);
  if (listing.disassembler == NULL)
    return tiny_fail (error, TINY_STATUS_UNSUPPORTED, "this libLLVM cannot disassemble %s",
                      triples[all.kind]);
  if (all.kind == CPU_ARCH_X86_64)
    listing.llvm->SetDisasmOptions (listing.disassembler, OPTION_ASM_VARIANT);
  status = cpu_object_for_each_code (data, size, &machine, list_section, &listing, error);
  listing.llvm->DisasmDispose (listing.disassembler);

  const bool is_whole = status == TINY_STATUS_OK && !listing.is_cut;
  *out_text = is_whole ? cpu_host->alloc (listing.used + 1) : NULL;
  if (*out_text != NULL) {
    memcpy (*out_text, listing.text != NULL ? listing.text : "", listing.used);
    (*out_text)[listing.used] = '\0';
  } else if (status == TINY_STATUS_OK) {
    status = tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory for the listing");
  }
  free (listing.text);
  return status;
}
