import { join } from "node:path";
import { LOCAL_ZONE } from "./time-zone.ts";

const ROOT = join(import.meta.dir, "../..");

export interface CommandResult {
  readonly code: number;
  readonly output: string;
  readonly errors: string;
}

/** Runs Waybill's command line to its end, in a separate process. */
export function runCommand(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  root = ROOT,
): Promise<CommandResult> {
  return runBun(["src/main.ts", ...args], { PORT: "0", LOG_LEVEL: "warn", TZ: LOCAL_ZONE, ...environment }, root);
}

/** Runs Bun with these arguments to its end, with nothing else in its environment but the paths of this machine. */
export async function runBun(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  root = ROOT,
): Promise<CommandResult> {
  const { PATH = "", HOME = "" } = process.env;
  const child = Bun.spawn([process.execPath, ...args], {
    cwd: root,
    env: { PATH, HOME, ...environment },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [output, errors] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  return { code: await child.exited, output, errors };
}
