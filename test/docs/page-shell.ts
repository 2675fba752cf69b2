import { mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { basicEnvironment } from "../support/basic-environment.ts";

const ROOT = join(import.meta.dir, "../..");
const END = "@@end of block ";

/** A shell in which a reader types the blocks of one page, one after the other. */
export class PageShell {
  private blocks = 0;
  private rest = "";
  private readonly decoder = new TextDecoder();
  private readonly output: AsyncIterator<Uint8Array>;

  private constructor(
    private readonly folder: string,
    private readonly bash: Bun.Subprocess<"pipe", "pipe", Bun.BunFile>,
  ) {
    this.output = bash.stdout[Symbol.asyncIterator]();
    void bash.stdin.write("set -euo pipefail\n");
  }

  /** In a folder that looks like the repository with this data folder; what blocks write stays in it. */
  static async open(folder: string, home: string): Promise<PageShell> {
    await mkdir(folder, { recursive: true });
    const entries = (await readdir(ROOT)).filter((name) => ![".git", ".waybill", ".bin"].includes(name));
    await Promise.all(entries.map((name) => symlink(join(ROOT, name), join(folder, name))));
    await symlink(home, join(folder, ".waybill"));
    // The command that `npm start -- …` runs once everything is installed.
    await mkdir(join(folder, ".bin"));
    const npm = `#!/bin/sh\nshift 2\nexec '${process.execPath}' src/main.ts "$@"\n`;
    await writeFile(join(folder, ".bin/npm"), npm, { mode: 0o755 });
    const basic = basicEnvironment();
    const bash = Bun.spawn(["bash", "--noprofile", "--norc"], {
      cwd: folder,
      env: { ...basic, PATH: `${join(folder, ".bin")}:${basic["PATH"]}`, WAYBILL_HOME: home, LOG_LEVEL: "warn" },
      stdin: "pipe",
      stdout: "pipe",
      stderr: Bun.file(join(folder, "errors")),
    });
    return new PageShell(folder, bash);
  }

  /** Runs the block and returns its output. Rejects if a command of it failed. */
  async run(language: string, text: string): Promise<string> {
    this.blocks += 1;
    const file = join(this.folder, `block-${this.blocks}.${language === "python" ? "py" : language}`);
    await writeFile(file, text);
    const command = { sh: "source", ts: process.execPath, python: "python3" }[language] ?? "source";
    void this.bash.stdin.write(`${command} '${file}'\nprintf '\\n%s\\n' '${END}${this.blocks}'\n`);
    await this.bash.stdin.flush();
    return this.untilEnd(`\n${END}${this.blocks}\n`, text);
  }

  private async untilEnd(end: string, block: string): Promise<string> {
    while (!this.rest.includes(end)) {
      const { value, done } = await this.output.next();
      if (done === true) {
        const errors = await Bun.file(join(this.folder, "errors")).text();
        throw new Error(`a command of this block failed:\n${block}\n${this.rest}\n${errors}`);
      }
      this.rest += this.decoder.decode(value, { stream: true });
    }
    const at = this.rest.indexOf(end);
    const printed = this.rest.slice(0, at);
    this.rest = this.rest.slice(at + end.length);
    return printed;
  }

  async close(): Promise<void> {
    this.bash.kill();
    await this.bash.exited;
  }
}
