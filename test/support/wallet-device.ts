import { unzipSync } from "fflate";

/** A pass as a device receives it: the content of the `.pkpass` file, and the file. */
export interface DevicePass {
  readonly passTypeId: string;
  readonly serial: string;
  readonly authenticationToken: string;
  /** `webServiceURL`; the device appends `/v1/…`. */
  readonly serviceUrl: string;
  readonly bytes: Uint8Array;
}

/** The passes that Wallet takes of a bundle (Apple, Distributing and updating a pass). */
const BUNDLE_PASSES_MAX = 10;
const BUNDLE_BYTES_MAX = 150_000_000;

/** The pass of a `.pkpass` file. */
export function openPass(bytes: Uint8Array): DevicePass {
  const json: unknown = JSON.parse(new TextDecoder().decode(unzipSync(bytes)["pass.json"]));
  const member = (name: string) => String(typeof json === "object" && json !== null && Reflect.get(json, name));
  return {
    passTypeId: member("passTypeIdentifier"),
    serial: member("serialNumber"),
    authenticationToken: member("authenticationToken"),
    serviceUrl: member("webServiceURL"),
    bytes,
  };
}

/** The passes of a `.pkpasses` file; throws for one that Wallet would refuse. */
export function openPasses(bytes: Uint8Array): readonly DevicePass[] {
  const files = Object.entries(unzipSync(bytes));
  const stranger = files.find(([name]) => !/^[^/]+\.pkpass$/.test(name));
  if (stranger !== undefined) throw new Error(`${stranger[0]} is no pass`);
  if (files.length > BUNDLE_PASSES_MAX || bytes.length > BUNDLE_BYTES_MAX) throw new Error("the bundle is too large");
  return files.map(([, file]) => openPass(file));
}

interface HeldPass extends DevicePass {
  /** The service's Last-Modified for the bytes, verbatim; null: they came another way. */
  readonly lastModified: string | null;
  /**
   * It was fetched after the last listing, so it may be newer than that listing's tag: the next listing may name it
   * once more although it is unchanged.
   */
  readonly mayBeAhead: boolean;
}

interface Round {
  running: Promise<void> | null;
  /** A push came during the round. */
  again: boolean;
  /** `lastUpdated` of the last listing. */
  tag: string | null;
  /** Pushes that may still come for changes that the last listing already named. */
  late: number;
}

/**
 * A device with passes that have a web service, as Apple's behave: it registers, receives pushes, asks for changes,
 * fetches with `If-Modified-Since`, and complains at `/v1/log` about services that waste its battery. The complaints
 * are those of Apple's own client.
 *
 * No service can rule out two of them while updates come faster than rounds: a fetch may return a version that the next
 * listing names, and a listing may name one that the next push announces. A device forgives each once if that may have
 * happened, and never after `nothingIsInFlight`.
 */
export class WalletDevice {
  readonly complaints: string[] = [];
  fetches = 0;
  /** Requests that the service could not answer (5xx) and that were repeated. */
  retries = 0;
  pushes = 0;
  private readonly held = new Map<string, HeldPass>();
  private readonly rounds = new Map<string, Round>();

  constructor(
    readonly deviceId: string,
    public pushToken: string,
  ) {}

  /** Puts the pass on the device and registers it; returns the status of the registration. */
  async add(pass: DevicePass): Promise<number> {
    this.held.set(formatKey(pass), { ...pass, lastModified: null, mayBeAhead: false });
    return this.register(pass);
  }

  async register(pass: DevicePass): Promise<number> {
    const headers = { authorization: `ApplePass ${pass.authenticationToken}`, "content-type": "application/json" };
    const body = JSON.stringify({ pushToken: this.pushToken });
    return (await fetch(this.registrationUrl(pass), { method: "POST", headers, body })).status;
  }

  /**
   * Sends the holder's entries in the form of a pass, without credentials, since Apple names none for this call; then
   * fetches the pass, which may no longer contain a form. Resolves to the answer.
   */
  async personalize(
    pass: DevicePass,
    personalizationToken: string,
    requiredPersonalizationInfo: Readonly<Record<string, unknown>>,
  ): Promise<{ readonly status: number; readonly bytes: Uint8Array }> {
    const { serviceUrl, passTypeId, serial } = pass;
    const address = `${serviceUrl}/v1/passes/${passTypeId}/${encodeURIComponent(serial)}/personalize`;
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify({ personalizationToken, requiredPersonalizationInfo });
    const answer = await fetch(address, { method: "POST", headers, body });
    const bytes = await answer.bytes();
    if (answer.status !== 200) return { status: answer.status, bytes };
    await this.fetch({ ...pass, lastModified: null, mayBeAhead: false }, false);
    const got = this.getBytes(pass);
    if (got === null || "personalization.json" in unzipSync(got)) {
      await this.complain(pass, `The pass '${serial}' was personalized and still asks`);
    }
    return { status: 200, bytes };
  }

  async remove(pass: DevicePass): Promise<number> {
    this.held.delete(formatKey(pass));
    const headers = { authorization: `ApplePass ${pass.authenticationToken}` };
    return (await fetch(this.registrationUrl(pass), { method: "DELETE", headers })).status;
  }

  /** The file on the device. */
  getBytes(pass: Pick<DevicePass, "passTypeId" | "serial">): Uint8Array | null {
    return this.held.get(formatKey(pass))?.bytes ?? null;
  }

  /** A push for the pass type. Several pushes during one round count as one, as on Apple's devices. */
  push(passTypeId: string): void {
    this.pushes += 1;
    const round = this.ensureRound(passTypeId);
    if (round.running !== null) {
      round.again = true;
      return;
    }
    round.running = this.run(passTypeId, round).finally(() => {
      round.running = null;
    });
  }

  /** Resolves when no round is running. */
  async idle(): Promise<void> {
    await Promise.all(Array.from(this.rounds.values(), ({ running }) => running));
  }

  /** From here on no call can be early or late: the device complains about each that seems so. */
  nothingIsInFlight(): void {
    for (const round of this.rounds.values()) round.late = 0;
    for (const [key, pass] of this.held) this.held.set(key, { ...pass, mayBeAhead: false });
  }

  private async run(passTypeId: string, round: Round): Promise<void> {
    do {
      round.again = false;
      await this.update(passTypeId, round);
    } while (round.again);
  }

  private async update(passTypeId: string, round: Round): Promise<void> {
    const [first] = this.listPasses(passTypeId);
    if (first === undefined) return;
    const url = new URL(`${first.serviceUrl}/v1/devices/${this.deviceId}/registrations/${passTypeId}`);
    if (round.tag !== null) url.searchParams.set("passesUpdatedSince", round.tag);
    const answer = await this.ask(url);
    const ahead = new Set(this.listPasses(passTypeId).flatMap((pass) => (pass.mayBeAhead ? [pass.serial] : [])));
    for (const pass of this.listPasses(passTypeId)) this.held.set(formatKey(pass), { ...pass, mayBeAhead: false });
    if (answer.status === 204) {
      if (round.late > 0) round.late -= 1;
      else await this.complain(first, spurious(round.tag));
      return;
    }
    const changed = answer.status === 200 ? listing(await answer.json()) : null;
    if (changed === null) return this.complain(first, `The listing was answered with ${answer.status}`);
    const { serials, tag } = changed;
    const response = `Response to "What changed?" request included ${serials.length} serial numbers but`;
    if (tag === null) await this.complain(first, `${response} omitted a lastUpdated tag`);
    else if (tag === round.tag)
      await this.complain(first, `${response} the lastUpdated tag (${tag}) remained the same`);
    for (const serial of serials) {
      const pass = this.held.get(formatKey({ passTypeId, serial }));
      if (pass === undefined) await this.complain(first, `Update requested for unregistered serial number ${serial}`);
      else await this.fetch(pass, ahead.has(serial));
    }
    round.tag = tag;
    round.late = serials.length;
  }

  private async fetch(pass: HeldPass, mayBeUnchanged: boolean): Promise<void> {
    this.fetches += 1;
    const { serviceUrl, passTypeId, serial, authenticationToken, lastModified } = pass;
    const headers = {
      authorization: `ApplePass ${authenticationToken}`,
      ...(lastModified === null ? {} : { "if-modified-since": lastModified }),
    };
    const address = `${serviceUrl}/v1/passes/${passTypeId}/${encodeURIComponent(serial)}`;
    const answer = await this.ask(new URL(address), headers);
    if (answer.status === 304) {
      if (!mayBeUnchanged) {
        const complaint = `Server requested update to serial number '${serial}', but the pass was unchanged`;
        await this.complain(pass, complaint);
      }
      return;
    }
    const bytes = await answer.bytes();
    if (answer.status !== 200) return this.complain(pass, `Serial number '${serial}' was answered ${answer.status}`);
    const modified = answer.headers.get("last-modified");
    if (modified === null) {
      await this.complain(pass, `Server returned '${serial}', but did not provide a 'last-modified' header`);
    } else if (lastModified !== null && modified === lastModified) {
      const complaint = `Server ignored the 'if-modified-since' header (${modified}) and returned the full unchanged pass`;
      await this.complain(pass, complaint);
    }
    this.held.set(formatKey(pass), { ...pass, bytes, lastModified: modified, mayBeAhead: true });
  }

  /** Retries while the service has trouble, with growing pauses. */
  private async ask(url: URL, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
    for (let waitMs = 50; ; waitMs = Math.min(2 * waitMs, 2_000)) {
      const answer = await fetch(url, { headers });
      if (answer.status < 500) return answer;
      this.retries += 1;
      await Bun.sleep(waitMs * (0.5 + Math.random()));
    }
  }

  private async complain({ serviceUrl }: DevicePass, message: string): Promise<void> {
    this.complaints.push(message);
    const headers = { "content-type": "application/json" };
    await fetch(`${serviceUrl}/v1/log`, { method: "POST", headers, body: JSON.stringify({ logs: [message] }) });
  }

  private registrationUrl({ serviceUrl, passTypeId, serial }: DevicePass): string {
    return `${serviceUrl}/v1/devices/${this.deviceId}/registrations/${passTypeId}/${encodeURIComponent(serial)}`;
  }

  private listPasses(passTypeId: string): readonly HeldPass[] {
    return [...this.held.values()].filter((pass) => pass.passTypeId === passTypeId);
  }

  private ensureRound(passTypeId: string): Round {
    const round = this.rounds.get(passTypeId) ?? { running: null, again: false, tag: null, late: 0 };
    this.rounds.set(passTypeId, round);
    return round;
  }
}

function formatKey({ passTypeId, serial }: Pick<DevicePass, "passTypeId" | "serial">): string {
  return `${passTypeId} ${serial}`;
}

function spurious(tag: string | null): string {
  return `Device received spurious push. Request for passesUpdatedSince '${tag ?? ""}' returned no serial numbers`;
}

function listing(body: unknown): { readonly serials: readonly string[]; readonly tag: string | null } | null {
  if (typeof body !== "object" || body === null) return null;
  const serials: unknown = Reflect.get(body, "serialNumbers");
  const tag: unknown = Reflect.get(body, "lastUpdated");
  if (!Array.isArray(serials) || !serials.every((serial) => typeof serial === "string")) return null;
  return { serials, tag: typeof tag === "string" && tag !== "" ? tag : null };
}
