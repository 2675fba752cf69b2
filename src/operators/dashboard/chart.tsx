import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { Overview } from "../../../clients/typescript/generated.ts";
import { useMedia } from "./load.ts";
import { Badge, Table } from "./ui.tsx";
import { channelName, count, localTick } from "./words.ts";

/** The style of each outcome: colours that colour-blind people can distinguish, and dashes for print and grey screens. */
const OUTCOMES = [
  { outcome: "accepted", label: "Accepted", dash: [] },
  { outcome: "sent", label: "Sent", dash: [] },
  { outcome: "delivered", label: "Delivered", dash: [] },
  { outcome: "bounced", label: "Bounced", dash: [6, 3] },
  { outcome: "failed", label: "Failed", dash: [3, 3] },
  { outcome: "suppressed", label: "Suppressed", dash: [1, 3] },
] as const;

/** The rates of the live hour, or of a longer time. */
type Rates = Pick<Overview["rates"], "from" | "interval_seconds"> & {
  readonly series: readonly {
    readonly channel: string;
    readonly outcome: string;
    readonly counts: readonly number[];
  }[];
};

/** An alarm that is drawn into a chart, with the last minutes over which it was measured. */
export interface DrawnAlarm {
  readonly channel: string;
  readonly title: string;
  readonly minutes: number;
}

const HEIGHT = 190;
/** Pixels of the axis with the counts. */
const WIDEST_AXIS = 90;
const AXIS_AIR = 20;
const WIDTH_OF_DIGITS = 26;
/** Rows of the table that replaces a chart by minutes. */
const STEPS_PER_ROW = 5;

interface Series {
  readonly label: string;
  readonly outcome: string;
  readonly dash: readonly number[];
  readonly counts: readonly number[];
}

/** Renders one chart per channel with traffic. */
export function RateCharts({
  rates,
  alarms = [],
}: {
  readonly rates: Rates;
  readonly alarms?: readonly DrawnAlarm[];
}): JSX.Element {
  const channels = [...new Set(rates.series.map(({ channel }) => channel))].filter((channel) =>
    rates.series.some((each) => each.channel === channel && each.counts.some((value) => value > 0)),
  );
  if (channels.length === 0) return <p class="empty">Nothing went through in this time.</p>;
  return (
    <div class="charts">
      {channels.map((channel) => (
        <ChannelChart
          key={channel}
          channel={channel}
          rates={rates}
          alarms={alarms.filter((alarm) => alarm.channel === channel)}
        />
      ))}
    </div>
  );
}

function ChannelChart({
  channel,
  rates,
  alarms,
}: {
  readonly channel: string;
  readonly rates: Rates;
  readonly alarms: readonly DrawnAlarm[];
}): JSX.Element {
  const series: readonly Series[] = OUTCOMES.flatMap(({ outcome, label, dash }) => {
    const found = rates.series.find((each) => each.channel === channel && each.outcome === outcome);
    return found === undefined ? [] : [{ outcome, label, dash, counts: found.counts }];
  });
  const sums = series.map(({ label, counts }) => `${label.toLowerCase()} ${count(addUp(counts))}`);
  return (
    <figure class="chart">
      <figcaption>
        <h3>{channelName(channel)}</h3>
        <ul class="legend">
          {series.map(({ outcome, label, counts }) => (
            <li key={outcome}>
              <span class={`line ${outcome}`} aria-hidden="true" />
              {label} <b>{count(addUp(counts))}</b>
            </li>
          ))}
        </ul>
        {alarms.map(({ title }) => (
          <p key={title}>
            <Badge tone="bad">{title}</Badge>
          </p>
        ))}
      </figcaption>
      <Plot
        label={`${channelName(channel)} by ${STEP_WORDS[rates.interval_seconds] ?? "interval"}: ${sums.join(", ")}`}
        series={series}
        fromSeconds={Date.parse(rates.from) / 1_000}
        stepSeconds={rates.interval_seconds}
        alarmMinutes={Math.max(0, ...alarms.map(({ minutes }) => minutes))}
      />
      <details>
        <summary>As a table</summary>
        <RateTable channel={channel} series={series} rates={rates} />
      </details>
    </figure>
  );
}

const STEP_WORDS: Readonly<Record<number, string>> = { 60: "minute", 3_600: "hour", 86_400: "UTC day" };

function addUp(counts: readonly number[]): number {
  return counts.reduce((sum, value) => sum + value, 0);
}

function RateTable({
  channel,
  series,
  rates,
}: {
  readonly channel: string;
  readonly series: readonly Series[];
  readonly rates: Rates;
}): JSX.Element {
  const perRow = rates.interval_seconds === 60 ? STEPS_PER_ROW : 1;
  const rows = Array.from({ length: Math.ceil((series[0]?.counts.length ?? 0) / perRow) }, (_, at) => at);
  const fromSeconds = Date.parse(rates.from) / 1_000;
  return (
    <Table
      caption={`${channelName(channel)}, by time`}
      rows={rows}
      keyOf={String}
      empty="Nothing."
      columns={[
        {
          head: "From",
          isHead: true,
          cell: (row) => localTick(fromSeconds + row * perRow * rates.interval_seconds, rates.interval_seconds),
        },
        ...series.map(({ label, counts }) => ({
          head: label,
          isNumber: true,
          cell: (row: number) => count(addUp(counts.slice(row * perRow, (row + 1) * perRow))),
        })),
      ]}
    />
  );
}

interface PlotProps {
  readonly label: string;
  readonly series: readonly Series[];
  readonly fromSeconds: number;
  readonly stepSeconds: number;
  /** The last minutes are marked; 0: none. */
  readonly alarmMinutes: number;
}

function Plot({ label, series, fromSeconds, stepSeconds, alarmMinutes }: PlotProps): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const isDark = useMedia("(prefers-color-scheme: dark)");
  const times = (series[0]?.counts ?? []).map((_, at) => fromSeconds + at * stepSeconds);
  const data: uPlot.AlignedData = [times, ...series.map(({ counts }) => [...counts])];
  const names = series.map(({ outcome }) => outcome).join();
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const made = new uPlot(optionsFor(element, { series, stepSeconds, alarmMinutes }), data, element);
    plot.current = made;
    const sizes = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT }));
    sizes.observe(element);
    return () => {
      sizes.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [names, isDark, stepSeconds, alarmMinutes]);
  useEffect(() => plot.current?.setData(data), [data]);
  return <div ref={place} class="plot" role="img" aria-label={label} />;
}

function optionsFor(
  element: HTMLElement,
  { series, stepSeconds, alarmMinutes }: Pick<PlotProps, "series" | "stepSeconds" | "alarmMinutes">,
): uPlot.Options {
  const style = getComputedStyle(element);
  const pen = document.createElement("canvas").getContext("2d");
  const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const font = "12px system-ui, sans-serif";
  /** Returns the width of the longest label with its tick and some padding, so that no digit is cut off. */
  const measureWidth = (labels: readonly string[]): number => {
    if (pen === null) return WIDEST_AXIS;
    pen.font = font;
    return Math.ceil(AXIS_AIR + Math.max(WIDTH_OF_DIGITS, ...labels.map((label) => pen.measureText(label).width)));
  };
  const axis = {
    stroke: colour("soft"),
    grid: { stroke: colour("grid"), width: 1 },
    ticks: { stroke: colour("grid"), width: 1 },
    font,
  };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    hooks: { drawClear: [(plot) => markAlarm(plot, alarmMinutes * 60, colour("bad-paper"))] },
    scales: { y: { range: (_, _min, max) => [0, Math.max(max * 1.05, 4)] } },
    axes: [
      {
        ...axis,
        space: stepSeconds === 3_600 ? 110 : 70,
        size: 32,
        values: (_, splits) => splits.map((at) => localTick(at, stepSeconds)),
      },
      {
        ...axis,
        size: (_, labels) => measureWidth(labels ?? []),
        values: (_, splits) => splits.map((value) => (Number.isInteger(value) ? count(value) : "")),
      },
    ],
    series: [
      {},
      ...series.map(({ label, outcome, dash }) => ({
        label,
        stroke: colour(outcome),
        width: 2,
        dash: [...dash],
        points: { show: false },
      })),
    ],
  };
}

/** Paints the time over which an alarm was measured, beneath the lines. */
function markAlarm({ ctx, bbox, data: [times], valToPos }: uPlot, seconds: number, colour: string): void {
  const last = times.at(-1);
  if (seconds === 0 || last === undefined) return;
  const left = Math.max(bbox.left, valToPos(last - seconds, "x", true));
  ctx.fillStyle = colour;
  ctx.fillRect(left, bbox.top, bbox.left + bbox.width - left, bbox.height);
}
