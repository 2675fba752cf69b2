import { readFile } from "node:fs/promises";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");

/** A script of the benchmark in a separate process, on the same Bun. */
export interface Child {
  readonly pid: number;
  /** Its first line on standard output. */
  readonly firstLine: string;
  /** CPU time used so far, in milliseconds (Linux; elsewhere NaN). */
  cpuMs(): Promise<number>;
  stop(): Promise<void>;
}

export async function startChild(script: string, args: readonly string[]): Promise<Child> {
  const child = Bun.spawn([process.execPath, script, ...args], { cwd: ROOT, stdout: "pipe", stderr: "inherit" });
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of child.stdout) {
    text += decoder.decode(chunk, { stream: true });
    if (text.includes("\n")) break;
  }
  const [firstLine = ""] = text.split("\n");
  if (firstLine === "") throw new Error(`${script} printed nothing and ended with ${await child.exited}`);
  return {
    pid: child.pid,
    firstLine,
    cpuMs: () => readCpuMs(child.pid),
    async stop() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

/** Fields 14 and 15 of /proc/<pid>/stat, in ticks of ten milliseconds (proc(5)). */
export async function readCpuMs(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  const fields = stat.split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
