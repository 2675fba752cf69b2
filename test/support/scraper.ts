const EVERY_MS = 2_000;
const TIMEOUT_MS = 5_000;

/** The address of the metrics, and the credentials. */
export interface Scraped {
  readonly url: string;
  readonly operatorToken: string;
}

/**
 * Reads a process's monitoring from its start to its end, as Prometheus, a load balancer and a dashboard would beside
 * any test: the metrics are answered and well-formed, and no counter falls, whatever fails meanwhile. A process may be
 * silent, since the test itself stops and kills processes.
 */
export class Scraper {
  readonly complaints: string[] = [];
  private readonly ended = Promise.withResolvers<void>();
  private readonly running: Promise<void>;
  private counters: ReadonlyMap<string, number> = new Map();
  private isOver = false;

  constructor(private readonly scraped: Scraped) {
    this.running = this.run();
  }

  /** Ends it and returns the faults found. */
  async stop(): Promise<readonly string[]> {
    this.isOver = true;
    this.ended.resolve();
    await this.running;
    return this.complaints;
  }

  private async run(): Promise<void> {
    while (!this.isOver) {
      await Promise.all([this.metrics(), this.ready(), this.overview()]);
      const timer = Promise.withResolvers<void>();
      const id = setTimeout(timer.resolve, EVERY_MS);
      await Promise.race([timer.promise, this.ended.promise]);
      clearTimeout(id);
    }
  }

  private async metrics(): Promise<void> {
    const answer = await this.ask("/metrics");
    // At another address, or with other credentials.
    if (answer === null || [401, 403, 404].includes(answer.status)) return;
    if (answer.status !== 200) return this.complain(`/metrics answered ${answer.status}: ${answer.text}`);
    const counters = countersIn(answer.text);
    if (typeof counters === "string") return this.complain(`/metrics has the line ${counters}`);
    for (const [series, before] of this.counters) {
      const now = counters.get(series) ?? 0;
      if (now < before) this.complain(`${series} fell from ${before} to ${now}`);
    }
    this.counters = counters;
  }

  private async ready(): Promise<void> {
    const answer = await this.ask("/ready");
    if (answer === null || answer.status === 404) return;
    if (![200, 503].includes(answer.status)) this.complain(`/ready answered ${answer.status}: ${answer.text}`);
  }

  private async overview(): Promise<void> {
    const authorization = `Bearer ${this.scraped.operatorToken}`;
    const answer = await this.ask("/dash/api/overview", { authorization });
    if (answer === null || answer.status < 500 || answer.status === 503) return;
    this.complain(`the overview answered ${answer.status}: ${answer.text}`);
  }

  private async ask(path: string, headers: Readonly<Record<string, string>> = {}) {
    try {
      const signal = AbortSignal.timeout(TIMEOUT_MS);
      const response = await fetch(`${this.scraped.url}${path}`, { headers, signal });
      return { status: response.status, text: await response.text() };
    } catch {
      return null;
    }
  }

  private complain(words: string): void {
    if (this.complaints.length < 10) this.complaints.push(words.slice(0, 500));
  }
}

const LINE = /^([a-zA-Z_:][\w:]*(?:\{(?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\.)*",?)*\})?) (-?[\d.e+-]+|NaN|[+-]Inf)$/;

/** The counters of a text in Prometheus' exposition format 0.0.4, by their series; or the first invalid line. */
function countersIn(text: string): ReadonlyMap<string, number> | string {
  const counters = new Map<string, number>();
  const names = new Set<string>();
  for (const line of text.split("\n")) {
    const counter = /^# TYPE (\S+) counter$/.exec(line)?.[1];
    if (counter !== undefined) names.add(counter);
    if (line === "" || line.startsWith("#")) continue;
    const [, series = "", value = ""] = LINE.exec(line) ?? [];
    if (series === "") return line;
    if (names.has(series.replace(/\{.*/, ""))) counters.set(series, Number(value));
  }
  return counters;
}
