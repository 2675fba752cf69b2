import { readFile } from "node:fs/promises";

/** What a client came to. */
export interface MailRun {
  readonly perSecond: number;
  /** Of the client, all threads; the server's is not in it. */
  readonly cpuMicros: number;
  /** Of it, on the thread of the event loop (Linux; elsewhere NaN). */
  readonly loopMicros: number;
}

/** Before they count: what is compiled when it is first used, is compiled by then. */
const WARM_UP = 2_000;

/** Sends as many mails over so many connections, and says what that came to. */
export async function mailRun(mails: number, connections: number, send: () => Promise<void>): Promise<MailRun> {
  const sendAll = async (count: number) => {
    let left = count;
    const one = async () => {
      while (left > 0) {
        left -= 1;
        await send();
      }
    };
    await Promise.all(Array.from({ length: connections }, one));
  };
  await sendAll(Math.min(WARM_UP, mails));
  const [cpu, loop, startedMs] = [process.cpuUsage(), await loopMicros(), performance.now()];
  await sendAll(mails);
  const seconds = (performance.now() - startedMs) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  return {
    perSecond: mails / seconds,
    cpuMicros: (user + system) / mails,
    loopMicros: ((await loopMicros()) - loop) / mails,
  };
}

/** CPU time of the main thread: its first field is in nanoseconds (Linux, Documentation/scheduler/sched-stats). */
async function loopMicros(): Promise<number> {
  const stat = await readFile(`/proc/self/task/${process.pid}/schedstat`, "utf8").catch(() => "");
  return stat === "" ? Number.NaN : Number(stat.split(" ")[0]) / 1000;
}
