/** Ends a process that was started `detached`, with all processes left in its group. */
export function endGroup({ pid }: { readonly pid: number }): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // Its group is already gone.
  }
}
