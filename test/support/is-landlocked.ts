import { dlopen } from "bun:ffi";

/** Whether this kernel can confine a process to its files (Landlock, from the version that is used on). */
export function isLandlocked(): boolean {
  if (process.platform !== "linux") return false;
  const { symbols } = dlopen("libc.so.6", { syscall: { args: ["i64", "u64", "u64", "u64"], returns: "i64" } });
  return Number(symbols.syscall(444n, 0n, 0n, 1n)) >= 2;
}
