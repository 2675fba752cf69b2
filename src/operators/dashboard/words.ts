/*
 * Numbers, times and states in words.
 */

const WHOLE = new Intl.NumberFormat("en");

export function count(value: number): string {
  return WHOLE.format(value);
}

/** `1 job`, `1,204 jobs`. */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** `3 %`, `0.4 %`; "" for a share of none. */
export function percent(part: number, whole: number): string {
  if (whole === 0) return "";
  const value = (Math.min(part, whole) / whole) * 100;
  return `${value > 0 && value < 9.95 ? value.toFixed(1) : Math.round(value)} %`;
}

const UNITS = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
  ["s", 1],
] as const;

/** The two largest units: `3 min 20 s`. */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const first = UNITS.findIndex(([, size]) => whole >= size);
  if (first === -1) return "0 s";
  const parts: string[] = [];
  let rest = whole;
  for (const [unit, size] of UNITS.slice(first, first + 2)) {
    const value = Math.floor(rest / size);
    rest -= value * size;
    if (value > 0) parts.push(`${value} ${unit}`);
  }
  return parts.join(" ");
}

const BYTES = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

export function bytes(value: number): string {
  const power = Math.min(BYTES.length - 1, value < 1 ? 0 : Math.floor(Math.log2(value) / 10));
  const scaled = value / 1_024 ** power;
  return `${scaled >= 10 || power === 0 ? Math.round(scaled) : scaled.toFixed(1)} ${BYTES[power] ?? "B"}`;
}

const DAY_AND_TIME = new Intl.DateTimeFormat("en-GB", {
  day: "2-digit",
  month: "short",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});
const DAY = new Intl.DateTimeFormat("en-GB", { day: "2-digit", month: "short", year: "numeric" });
const TIME = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

/** In the viewer's zone. */
export function localTime(iso: string, precision: "day" | "second" = "second"): string {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return iso;
  return (precision === "day" ? DAY : DAY_AND_TIME).format(at).replace(",", "");
}

const DAY_AND_MINUTE = new Intl.DateTimeFormat("en-GB", {
  day: "2-digit",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
});
const SHORT_DAY = new Intl.DateTimeFormat("en-GB", { day: "2-digit", month: "short", timeZone: "UTC" });
const DAY_SECONDS = 86_400;

/** When an interval of this length begins, as short as it can be told; days are those of UTC. */
export function localTick(unixSeconds: number, stepSeconds: number): string {
  const at = new Date(unixSeconds * 1_000);
  if (stepSeconds >= DAY_SECONDS) return SHORT_DAY.format(at);
  return stepSeconds < 3_600 ? TIME.format(at) : DAY_AND_MINUTE.format(at).replace(",", "");
}

export function utcTime(iso: string): string {
  const at = new Date(iso);
  return Number.isNaN(at.getTime())
    ? iso
    : `${at
        .toISOString()
        .replace("T", " ")
        .replace(/\.\d+Z$/, "")} UTC`;
}

/** `4 min ago`, `in 2 h`. */
export function ago(iso: string, nowMs: number): string {
  const seconds = (nowMs - Date.parse(iso)) / 1_000;
  if (Number.isNaN(seconds)) return iso;
  if (Math.abs(seconds) < 1) return "now";
  return seconds > 0 ? `${duration(seconds)} ago` : `in ${duration(-seconds)}`;
}

/** `a, b and c`. */
export function listed(words: readonly string[]): string {
  return new Intl.ListFormat("en", { type: "conjunction" }).format(words);
}

export const CHANNELS = ["email", "whatsapp", "wallet"] as const;
export type Channel = (typeof CHANNELS)[number];

const CHANNEL_NAMES: Readonly<Record<string, string>> = { email: "E-mail", whatsapp: "WhatsApp", wallet: "Wallet" };

export function channelName(channel: string): string {
  return CHANNEL_NAMES[channel] ?? channel;
}

/** A choice of a form that offers all channels. */
export const CHANNEL_CHOICES = CHANNELS.map((value) => ({ value, label: channelName(value) }));
