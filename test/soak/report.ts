import type { FaultSpan } from "./fault-log.ts";
import type { Verdict } from "./judge.ts";
import type { SoakOptions } from "./options.ts";
import type { ResourcePoint, Slope } from "./resources.ts";

/** The result of a soak. */
export interface SoakReport {
  readonly options: Omit<SoakOptions, "only" | "without">;
  readonly minutes: number;
  readonly load: Readonly<Record<string, number>>;
  readonly statuses: Readonly<Record<string, number>>;
  readonly failures: Readonly<Record<string, number>>;
  readonly faults: readonly FaultSpan[];
  readonly verdicts: readonly Verdict[];
  readonly slopes: readonly Slope[];
  readonly points: readonly ResourcePoint[];
  /** The folder of the kept logs; null: they were not kept. */
  readonly logs: string | null;
}

const SHOWN = 5;

export function holds({ verdicts }: Pick<SoakReport, "verdicts">): boolean {
  return verdicts.every(({ broken }) => broken.length === 0);
}

/** The report in Markdown. */
export function toMarkdown(report: SoakReport): string {
  const { options, minutes, verdicts, logs } = report;
  const { seed, shape, processes, rate, tenants } = options;
  return [
    `# Soak: ${holds(report) ? "every promise held" : "BROKEN PROMISES"}`,
    "",
    `Seed ${seed}, ${minutes.toFixed(1)} minutes, ${shape} (PROCESSES=${processes}), ${tenants} tenants, ${rate} messages a second asked for.`,
    "",
    table(
      ["promise", "checked", "broken", "note"],
      verdicts.map(({ promise, checked, broken, note }) => [promise, checked, broken.length, note]),
    ),
    ...verdicts.flatMap(brokenLines),
    "",
    table(["fault", "times", "seconds", "longest until ready, s"], faultRows(report.faults)),
    "",
    table(
      ["resource", "after warm-up", "at the end", "an hour", "allowed"],
      report.slopes.map(({ name, first, last, perHour, bound }) => [
        name,
        first.toFixed(1),
        last.toFixed(1),
        perHour.toFixed(1),
        bound === null ? "" : bound.toFixed(1),
      ]),
    ),
    "",
    table(["load", "count"], Object.entries(report.load)),
    "",
    table(["answer", "count"], [...Object.entries(report.statuses), ...Object.entries(report.failures)]),
    ...(logs === null ? [] : ["", `The logs are in ${logs}.`]),
    "",
  ].join("\n");
}

function brokenLines({ promise, broken }: Verdict): readonly string[] {
  if (broken.length === 0) return [];
  const more = broken.length > SHOWN ? [`- … and ${broken.length - SHOWN} more`] : [];
  return ["", `**${promise}**`, "", ...broken.slice(0, SHOWN).map((what) => `- ${what}`), ...more];
}

function faultRows(faults: readonly FaultSpan[]): readonly (readonly (string | number)[])[] {
  const kinds = Map.groupBy(faults, ({ kind }) => kind);
  return Array.from(kinds, ([kind, all]) => [
    kind,
    all.length,
    (all.reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, 0) / 1_000).toFixed(0),
    (Math.max(...all.map(({ recoveryMs }) => recoveryMs ?? 0)) / 1_000).toFixed(1),
  ]).sort(([a], [b]) => String(a).localeCompare(String(b)));
}

function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const line = (cells: readonly (string | number)[]) =>
    `| ${cells.map((cell) => String(cell).replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}
