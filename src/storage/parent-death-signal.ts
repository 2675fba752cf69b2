let wrapper: Promise<readonly string[]> | null = null;

/**
 * What to put before a command so that the kernel kills it with this process, where there is such a thing (Linux;
 * BusyBox's lacks the option). Start the command on the main thread: it ends when the thread that started it ends.
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
