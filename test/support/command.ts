import { join } from "node:path";
import { basicEnvironment } from "./basic-environment.ts";

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
  return runBun(["src/main.ts", ...args], { PORT: "0", LOG_LEVEL: "warn", ...environment }, root);
}

/** Runs Bun with these arguments to its end, with `basicEnvironment` as its whole environment. */
export async function runBun(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  root = ROOT,
): Promise<CommandResult> {
  const child = Bun.spawn([process.execPath, ...args], {
    cwd: root,
    env: { ...basicEnvironment(), ...environment },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [output, errors] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  return { code: await child.exited, output, errors };
}
