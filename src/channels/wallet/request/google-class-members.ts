import { Type } from "@sinclair/typebox";
import { isCalendarDay } from "../../../domain/calendar-day.ts";
import type { GoogleKind } from "../../../domain/channels/wallet.ts";
import { isLoopback } from "../../../domain/texts/host.ts";
import { isJsonObject, type Json } from "../../../domain/texts/json.ts";
import { parseUrl } from "../../../domain/texts/parse-url.ts";
import { exactlyOne, optional } from "../../../http/schemas.ts";
import { googleColour, localized } from "./google-object-members.ts";
import { filled, type Kinds, kind, matching, OTHERS_TOO, open, said, text } from "./kinds.ts";
import { type Checked, Fault, fault, readFilledText } from "./readers.ts";

const DAY_CHARS = "2026-11-21".length;
/** ISO 8601, with or without an offset: without one, it is the venue's local time. */
const DATE_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})?$/;
/** The same without an offset: the airport's own time. */
const LOCAL_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?$/;

/** Required members of a class of each kind according to Google's reference, beside its id and review status. */
export const REQUIRED_OF_CLASS: Readonly<Record<GoogleKind, readonly string[]>> = {
  generic: [],
  eventTicket: ["issuerName", "eventName"],
  loyalty: ["issuerName", "programName", "programLogo"],
  offer: ["issuerName", "title", "provider", "redemptionChannel"],
  giftCard: ["issuerName"],
  transit: ["issuerName", "transitType", "logo"],
  flight: ["issuerName", "origin", "destination", "flightHeader", "localScheduledDepartureDateTime"],
};

/** The optional members in the schema of each kind's class. */
export const FURTHER_OF_CLASS: Readonly<Record<GoogleKind, readonly string[]>> = {
  generic: [],
  eventTicket: ["venue", "dateTime", "hexBackgroundColor", "logo", "heroImage"],
  loyalty: ["hexBackgroundColor", "heroImage"],
  offer: ["hexBackgroundColor", "heroImage", "titleImage"],
  giftCard: ["hexBackgroundColor", "heroImage", "programLogo"],
  transit: ["hexBackgroundColor", "heroImage"],
  flight: [
    "hexBackgroundColor",
    "heroImage",
    "localEstimatedOrActualDepartureDateTime",
    "localBoardingDateTime",
    "localGateClosingDateTime",
    "localScheduledArrivalDateTime",
    "localEstimatedOrActualArrivalDateTime",
  ],
};

const WEB = /^[hH][tT][tT][pP][sS]?:/;
export const image = kind(
  readImage,
  Type.Object(
    {
      sourceUri: optional(Type.Object({ uri: Type.String({ format: "uri", pattern: WEB.source }) }, OTHERS_TOO)),
      privateImageId: optional(said(text, "Of an image that Google was given before, in place of the other.").schema),
    },
    {
      $id: "GoogleImage",
      ...OTHERS_TOO,
      anyOf: [
        { required: ["sourceUri"], properties: { sourceUri: { type: "object" } } },
        { required: ["privateImageId"], properties: { privateImageId: { type: "string" } } },
      ],
    },
  ),
);
const time = (form: RegExp, says: string, description: string) =>
  kind(
    (value, field) => (typeof value === "string" && isTime(value, form) ? value : fault(field, says)),
    Type.String({ pattern: form.source, description }),
  );
const classTime = time(
  DATE_TIME,
  "must be a date and time such as 2026-11-21T18:30:00",
  "Without an offset it is the venue's own time.",
);
/** Google refuses an offset here: it knows the airport's. */
const localTime = time(
  LOCAL_TIME,
  "must be a date and time without an offset, such as 2026-11-21T18:30:00",
  "The airport's own time, without an offset.",
);

const VENUE: Kinds = { name: localized, address: localized };
const AIRPORT: Kinds = { airportIataCode: matching(/^[A-Za-z]{3}$/, "must be three letters, such as SFO") };
const carrier = kind(
  readCarrier,
  Type.Object(
    { carrierIataCode: optional(filled.schema), carrierIcaoCode: optional(filled.schema) },
    {
      $id: "GoogleCarrier",
      description: "One of the two codes.",
      ...OTHERS_TOO,
      ...exactlyOne("carrierIataCode", "carrierIcaoCode"),
    },
  ),
);
const FLIGHT_HEADER: Kinds = { flightNumber: filled, carrier, operatingCarrier: carrier };
const airport = open(AIRPORT, ["airportIataCode"], { $id: "GoogleAirport" });

/** Members that we check; Google receives and checks all others unchanged. A name means the same in each kind that has it. */
export const CLASS_MEMBERS: Kinds = {
  issuerName: filled,
  eventName: localized,
  programName: filled,
  programLogo: image,
  title: filled,
  provider: filled,
  // Google adds values to these: which ones there are is its own to say.
  redemptionChannel: said(filled, "Such as INSTORE, ONLINE or BOTH."),
  transitType: said(filled, "Such as BUS, RAIL, TRAM, FERRY or OTHER."),
  origin: airport,
  destination: airport,
  flightHeader: open(FLIGHT_HEADER, ["carrier", "flightNumber"], { $id: "GoogleFlightHeader" }),
  localScheduledDepartureDateTime: localTime,
  localEstimatedOrActualDepartureDateTime: localTime,
  localBoardingDateTime: localTime,
  localGateClosingDateTime: localTime,
  localScheduledArrivalDateTime: localTime,
  localEstimatedOrActualArrivalDateTime: localTime,
  venue: open(VENUE, ["name", "address"], { missing: null }),
  dateTime: open({ doorsOpen: classTime, start: classTime, end: classTime }),
  callbackOptions: open({ url: kind(readCallbackUrl, Type.String({ format: "uri" })) }),
  hexBackgroundColor: googleColour,
  logo: image,
  heroImage: image,
  titleImage: image,
};

const airportPart = open(AIRPORT, [], { $id: "GoogleAirportChange" });
/** Members that a change can give in part: see `GoogleClassService.change`. */
export const GIVEN_IN_PART: Kinds = {
  venue: open(VENUE),
  origin: airportPart,
  destination: airportPart,
  flightHeader: open(FLIGHT_HEADER, [], { $id: "GoogleFlightHeaderChange" }),
};

export const CHANGED_MEMBERS: Kinds = { ...CLASS_MEMBERS, ...GIVEN_IN_PART };

function isTime(text: string, form: RegExp): boolean {
  return form.test(text) && isCalendarDay(text.slice(0, DAY_CHARS)) && !Number.isNaN(Date.parse(text));
}

function readCarrier(value: Json, field: string): Checked<Json> {
  if (!isJsonObject(value)) return fault(field, "must be an object");
  const codes = ["carrierIataCode", "carrierIcaoCode"].filter((name) => (value[name] ?? null) !== null);
  const [name, other] = codes;
  if (name === undefined || other !== undefined) {
    return fault(`${field}.carrierIataCode`, "must be given, or carrierIcaoCode, and not both");
  }
  const code = readFilledText(value[name] ?? null, `${field}.${name}`);
  return code instanceof Fault ? code : value;
}

/** Google calls no other addresses; the sandbox also calls this machine's. */
function readCallbackUrl(value: Json, field: string): Checked<Json> {
  const url = typeof value === "string" ? parseUrl(value) : null;
  const isCalled = url?.protocol === "https:" || (url?.protocol === "http:" && isLoopback(url.hostname));
  return isCalled ? value : fault(field, "must be an https address");
}

function readImage(value: Json, field: string): Checked<Json> {
  // An image that was uploaded to Google before.
  if (isJsonObject(value) && typeof value["privateImageId"] === "string") return value;
  const source = isJsonObject(value) ? value["sourceUri"] : undefined;
  const uri = isJsonObject(source) ? source["uri"] : undefined;
  const url = typeof uri === "string" ? parseUrl(uri) : null;
  if (url === null || !WEB.test(url.protocol)) {
    return fault(`${field}.sourceUri.uri`, "must be the web address of an image");
  }
  return value;
}
