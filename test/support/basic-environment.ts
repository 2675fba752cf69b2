/**
 * The zone of servers and commands that tests start: not UTC, in which all times are reported and stored, and not whole
 * hours from it.
 */
const LOCAL_ZONE = "Asia/Kathmandu";
/** A locale in which a capital I is no capital of i, and which most machines lack. */
const LOCAL_LANGUAGE = "tr_TR.UTF-8";

/** The only variables of this machine's environment that servers and commands of a test receive. */
export function basicEnvironment(): Record<string, string> {
  const { PATH = "", HOME = "", TMPDIR = "" } = process.env;
  return {
    PATH,
    HOME,
    TZ: LOCAL_ZONE,
    LANG: LOCAL_LANGUAGE,
    LC_ALL: LOCAL_LANGUAGE,
    ...(TMPDIR === "" ? {} : { TMPDIR }),
    ...compilerOptions(),
  };
}

/** The variables for the runtime's compilers, set by the run (`run-test-files.ts`) or by the user who started it. */
export function compilerOptions(): Record<string, string> {
  const set = Object.entries(process.env).filter(([name]) => name.startsWith("BUN_JSC_"));
  return Object.fromEntries(set.map(([name, value = ""]) => [name, value]));
}
