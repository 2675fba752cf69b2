import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");

export interface CommandResult {
  readonly code: number;
  readonly output: string;
  readonly errors: string;
}

/** Runs Waybill's command line to its end, in a separate process. */
export async function runCommand(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  root = ROOT,
): Promise<CommandResult> {
  const { PATH = "", HOME = "" } = process.env;
  const child = Bun.spawn([process.execPath, "src/main.ts", ...args], {
    cwd: root,
    env: { PATH, HOME, PORT: "0", LOG_LEVEL: "warn", ...environment },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [output, errors] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  return { code: await child.exited, output, errors };
}
