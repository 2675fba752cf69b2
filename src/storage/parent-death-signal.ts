let wrapper: Promise<readonly string[]> | null = null;

/**
 * Returns a command prefix that makes the kernel kill the command with this process, where supported (Linux; BusyBox's
 * version lacks the option). Start the command on the main thread: it dies with the thread that started it.
 */
export function parentDeathSignal(): Promise<readonly string[]> {
  wrapper ??= find();
  return wrapper;
}

async function find(): Promise<readonly string[]> {
  const setpriv = Bun.which("setpriv");
  if (setpriv === null) return [];
  const found = [setpriv, "--pdeathsig", "KILL"];
  const trial = Bun.spawn([...found, "true"], { stdout: "ignore", stderr: "ignore" });
  return (await trial.exited) === 0 ? found : [];
}
