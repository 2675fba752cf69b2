/** Ends a process that was started `detached`, with all that it has started and left in its group. */
export function endGroup({ pid }: { readonly pid: number }): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // Its group is already gone.
  }
}
