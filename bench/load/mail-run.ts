import { readFile } from "node:fs/promises";

/** A client's result. */
export interface MailRun {
  readonly perSecond: number;
  /** CPU of the client, all threads, without the server. */
  readonly cpuMicros: number;
  /** Of that, the event loop's thread (Linux; elsewhere NaN). */
  readonly loopMicros: number;
}

/** Mails that do not count: they compile the code. */
const WARM_UP = 2_000;

/** Sends the given number of mails over the given number of connections, and returns the figures. */
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
