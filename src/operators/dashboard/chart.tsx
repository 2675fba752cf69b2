import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { Overview } from "../../../clients/typescript/generated.ts";
import { useMedia } from "./load.ts";
import { Table } from "./ui.tsx";
import { channelName, count, localMinute } from "./words.ts";

/** The style of each outcome: colours that colour-blind people can distinguish, and dashes for print and grey screens. */
const OUTCOMES = [
  { outcome: "accepted", label: "Accepted", dash: [] },
  { outcome: "delivered", label: "Delivered", dash: [] },
  { outcome: "bounced", label: "Bounced", dash: [6, 3] },
  { outcome: "failed", label: "Failed", dash: [3, 3] },
  { outcome: "suppressed", label: "Suppressed", dash: [1, 3] },
] as const;

type Rates = Overview["rates"];

const HEIGHT = 190;
/** Pixels of the axis with the counts. */
const WIDEST_AXIS = 90;
const AXIS_AIR = 20;
const WIDTH_OF_DIGITS = 26;
/** Rows of the table that replaces a chart. */
const MINUTES_PER_ROW = 5;

interface Series {
  readonly label: string;
  readonly outcome: string;
  readonly dash: readonly number[];
  readonly counts: readonly number[];
}

/** Renders one chart per channel with traffic. */
export function RateCharts({ rates }: { readonly rates: Rates }): JSX.Element {
  const channels = [...new Set(rates.series.map(({ channel }) => channel))].filter((channel) =>
    rates.series.some((each) => each.channel === channel && each.counts.some((value) => value > 0)),
  );
  if (channels.length === 0) return <p class="empty">Nothing was accepted or delivered in the last hour.</p>;
  return (
    <div class="charts">
      {channels.map((channel) => (
        <ChannelChart key={channel} channel={channel} rates={rates} />
      ))}
    </div>
  );
}

function ChannelChart({ channel, rates }: { readonly channel: string; readonly rates: Rates }): JSX.Element {
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
      </figcaption>
      <Plot
        label={`${channelName(channel)} by minute over the last hour: ${sums.join(", ")}`}
        series={series}
        fromSeconds={Date.parse(rates.from) / 1_000}
        stepSeconds={rates.interval_seconds}
      />
      <details>
        <summary>As a table</summary>
        <RateTable channel={channel} series={series} rates={rates} />
      </details>
    </figure>
  );
}

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
  const rows = Array.from({ length: Math.ceil((series[0]?.counts.length ?? 0) / MINUTES_PER_ROW) }, (_, at) => at);
  const fromSeconds = Date.parse(rates.from) / 1_000;
  return (
    <Table
      caption={`${channelName(channel)}, by five minutes`}
      rows={rows}
      keyOf={String}
      empty="Nothing."
      columns={[
        {
          head: "From",
          isHead: true,
          cell: (row) => localMinute(fromSeconds + row * MINUTES_PER_ROW * rates.interval_seconds),
        },
        ...series.map(({ label, counts }) => ({
          head: label,
          isNumber: true,
          cell: (row: number) => count(addUp(counts.slice(row * MINUTES_PER_ROW, (row + 1) * MINUTES_PER_ROW))),
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
}

function Plot({ label, series, fromSeconds, stepSeconds }: PlotProps): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const isDark = useMedia("(prefers-color-scheme: dark)");
  const times = (series[0]?.counts ?? []).map((_, at) => fromSeconds + at * stepSeconds);
  const data: uPlot.AlignedData = [times, ...series.map(({ counts }) => [...counts])];
  const names = series.map(({ outcome }) => outcome).join();
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const made = new uPlot(optionsFor(element, series), data, element);
    plot.current = made;
    const sizes = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT }));
    sizes.observe(element);
    return () => {
      sizes.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [names, isDark]);
  useEffect(() => plot.current?.setData(data), [data]);
  return <div ref={place} class="plot" role="img" aria-label={label} />;
}

function optionsFor(element: HTMLElement, series: readonly Series[]): uPlot.Options {
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
    scales: { y: { range: (_, _min, max) => [0, Math.max(max * 1.05, 4)] } },
    axes: [
      { ...axis, space: 70, size: 32, values: (_, splits) => splits.map(localMinute) },
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
