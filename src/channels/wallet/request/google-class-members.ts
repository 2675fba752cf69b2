import { isCalendarDay } from "../../../domain/calendar-day.ts";
import type { GoogleKind } from "../../../domain/channels/wallet.ts";
import { isLoopback } from "../../../domain/texts/host.ts";
import { isJsonObject, type Json } from "../../../domain/texts/json.ts";
import { parseUrl } from "../../../domain/texts/parse-url.ts";
import { type Checked, Fault, fault, type Reader, readFilledText, readGoogleColour, readLocalized } from "./readers.ts";

const DAY_CHARS = "2026-11-21".length;
/** ISO 8601, with or without an offset: without one, it is the venue's local time. */
export const DATE_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})?$/;
/** The same without an offset: the airport's own time. */
export const LOCAL_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?$/;

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

/** Members that we check; Google receives and checks all others unchanged. A name means the same in each kind that has it. */
export const CLASS_MEMBERS: Readonly<Record<string, Reader>> = {
  issuerName: readFilledText,
  eventName: readLocalized,
  programName: readFilledText,
  title: readFilledText,
  provider: readFilledText,
  // Google adds values to these: which ones there are is its own to say.
  redemptionChannel: readFilledText,
  transitType: readFilledText,
  venue: readVenue,
  dateTime: readDateTime,
  origin: readAirport,
  destination: readAirport,
  flightHeader: readFlightHeader,
  localScheduledDepartureDateTime: readLocalTime,
  localEstimatedOrActualDepartureDateTime: readLocalTime,
  localBoardingDateTime: readLocalTime,
  localGateClosingDateTime: readLocalTime,
  localScheduledArrivalDateTime: readLocalTime,
  localEstimatedOrActualArrivalDateTime: readLocalTime,
  callbackOptions: readCallbackOptions,
  hexBackgroundColor: readGoogleColour,
  logo: readImage,
  heroImage: readImage,
  programLogo: readImage,
  titleImage: readImage,
};

/** In a change, some members can be given in part: see `GoogleClassService.change`. */
export const CHANGED_MEMBERS: Readonly<Record<string, Reader>> = {
  ...CLASS_MEMBERS,
  venue: readVenuePart,
  origin: readAirportPart,
  destination: readAirportPart,
  flightHeader: readFlightHeaderPart,
};

function readVenue(value: Json, field: string): Checked<Json> {
  return readVenueTexts(value, field, ["name", "address"]);
}

/** As far as the change gives it. */
function readVenuePart(value: Json, field: string): Checked<Json> {
  const given = isJsonObject(value) ? value : {};
  return readVenueTexts(
    value,
    field,
    ["name", "address"].filter((name) => (given[name] ?? null) !== null),
  );
}

function readVenueTexts(value: Json, field: string, names: readonly string[]): Checked<Json> {
  if (!isJsonObject(value)) return fault(field, "must be an object");
  for (const name of names) {
    const text = readLocalized(value[name] ?? null, `${field}.${name}`);
    if (text instanceof Fault) return text;
  }
  return value;
}

function readDateTime(value: Json, field: string): Checked<Json> {
  if (!isJsonObject(value)) return fault(field, "must be an object");
  for (const name of ["doorsOpen", "start", "end"]) {
    const text = value[name];
    if (text === undefined || text === null) continue;
    if (typeof text !== "string" || !isTime(text, DATE_TIME)) {
      return fault(`${field}.${name}`, "must be a date and time such as 2026-11-21T18:30:00");
    }
  }
  return value;
}

/** Google refuses an offset here: it knows the airport's. */
function readLocalTime(value: Json, field: string): Checked<Json> {
  if (typeof value === "string" && isTime(value, LOCAL_TIME)) return value;
  return fault(field, "must be a date and time without an offset, such as 2026-11-21T18:30:00");
}

function isTime(text: string, form: RegExp): boolean {
  return form.test(text) && isCalendarDay(text.slice(0, DAY_CHARS)) && !Number.isNaN(Date.parse(text));
}

function readAirport(value: Json, field: string): Checked<Json> {
  if (!isJsonObject(value)) return fault(field, "must be an object");
  if ((value["airportIataCode"] ?? null) === null) return fault(`${field}.airportIataCode`, "is required");
  return readAirportPart(value, field);
}

function readAirportPart(value: Json, field: string): Checked<Json> {
  if (!isJsonObject(value)) return fault(field, "must be an object");
  const code = value["airportIataCode"] ?? null;
  if (code === null || (typeof code === "string" && /^[A-Za-z]{3}$/.test(code))) return value;
  return fault(`${field}.airportIataCode`, "must be three letters, such as SFO");
}

function readFlightHeader(value: Json, field: string): Checked<Json> {
  if (!isJsonObject(value)) return fault(field, "must be an object");
  const missing = ["carrier", "flightNumber"].find((name) => (value[name] ?? null) === null);
  return missing === undefined ? readFlightHeaderPart(value, field) : fault(`${field}.${missing}`, "is required");
}

function readFlightHeaderPart(value: Json, field: string): Checked<Json> {
  if (!isJsonObject(value)) return fault(field, "must be an object");
  const number = value["flightNumber"] ?? null;
  const text = number === null ? null : readFilledText(number, `${field}.flightNumber`);
  if (text instanceof Fault) return text;
  for (const name of ["carrier", "operatingCarrier"]) {
    const carrier = value[name] ?? null;
    const read = carrier === null ? null : readCarrier(carrier, `${field}.${name}`);
    if (read instanceof Fault) return read;
  }
  return value;
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
function readCallbackOptions(value: Json, field: string): Checked<Json> {
  if (!isJsonObject(value)) return fault(field, "must be an object");
  const text = value["url"] ?? null;
  if (text === null) return value;
  const url = typeof text === "string" ? parseUrl(text) : null;
  const isCalled = url?.protocol === "https:" || (url?.protocol === "http:" && isLoopback(url.hostname));
  return isCalled ? value : fault(`${field}.url`, "must be an https address");
}

function readImage(value: Json, field: string): Checked<Json> {
  // An image that was uploaded to Google before.
  if (isJsonObject(value) && typeof value["privateImageId"] === "string") return value;
  const source = isJsonObject(value) ? value["sourceUri"] : undefined;
  const uri = isJsonObject(source) ? source["uri"] : undefined;
  const url = typeof uri === "string" ? parseUrl(uri) : null;
  if (url === null || (url.protocol !== "https:" && url.protocol !== "http:")) {
    return fault(`${field}.sourceUri.uri`, "must be the web address of an image");
  }
  return value;
}
