import { dlopen } from "bun:ffi";

/** Whether this kernel can restrict a process to its files (Landlock, since the version that is required). */
export function isLandlocked(): boolean {
  if (process.platform !== "linux") return false;
  const { symbols } = dlopen("libc.so.6", { syscall: { args: ["i64", "u64", "u64", "u64"], returns: "i64" } });
  return Number(symbols.syscall(444n, 0n, 0n, 1n)) >= 2;
}
