import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { freePort } from "../support/free-port.ts";
import { SEED_MASTER_KEY } from "../support/seed-tenants.ts";
import type { Undo } from "../support/undo.ts";
import { Api } from "./api.ts";
import { Book } from "./book.ts";
import { ChatProvider } from "./chat-provider.ts";
import { FaultLog } from "./fault-log.ts";
import { MailProvider } from "./mail-provider.ts";
import type { SoakOptions } from "./options.ts";
import { Receivers } from "./receivers.ts";
import { Service } from "./service.ts";
import { OPERATOR_TOKEN, serviceEnvironment } from "./service-environment.ts";
import { SoakStores } from "./soak-stores.ts";
import type { SoakWorld } from "./soak-world.ts";
import { Tenants } from "./tenants.ts";
import { WalletProvider } from "./wallet-provider.ts";

/** Starts all parts of the soak, the program last. All that it starts ends with `undo`. */
export async function openWorld(options: SoakOptions, folder: string, undo: Undo): Promise<SoakWorld> {
  const book = new Book();
  const faults = new FaultLog();
  const stores = await SoakStores.open(folder, options, undo);
  const tenants = await Tenants.seed(stores.seedPlace, options.tenants);
  const webhookSecret = randomBytes(24).toString("base64url");
  const mail = undo.add(await MailProvider.start(book, join(folder, "mail.log")), (one) => one.stop());
  const chat = undo.add(await ChatProvider.start(book, webhookSecret), (one) => one.stop());
  const wallet = undo.add(await WalletProvider.start(), (one) => one.stop());
  const receivers = undo.add(new Receivers(book), (one) => one.stop());
  const clockFile = join(folder, "clock.json");
  writeFileSync(clockFile, "{}");
  const parts = {
    options,
    folder,
    clockFile,
    book,
    faults,
    stores,
    tenants,
    mail,
    chat,
    wallet,
    receivers,
    keys: { masterKeys: [SEED_MASTER_KEY], webhookSecrets: [webhookSecret] },
    analystsPort: await freePort(),
    smtpPort: await freePort(),
  };
  const logs = join(folder, "logs");
  const createService = async (name: string, home: string, isSide: boolean) => {
    const environment = () => serviceEnvironment(parts, isSide);
    const service = new Service({ name, home, port: await freePort(), logs, faults, environment });
    return undo.add(service, (one) => one.end());
  };
  const service = await createService("main", stores.home, false);
  const sideHome = join(folder, "side");
  await mkdir(sideHome, { mode: 0o700 });
  const side = stores.servers === null ? null : await createService("second", sideHome, true);
  chat.callBack(service.url);
  await service.start();
  await side?.start();
  return { ...parts, service, side, api: new Api(service.url, OPERATOR_TOKEN) };
}

/** Registers the tenants' receivers for all events from now on. */
export async function makeWebhooks({ tenants, receivers, api, book }: SoakWorld): Promise<void> {
  for (const [at, { id, apiKey }] of tenants.withWebhooks.entries()) {
    const body = { url: receivers.buildUrl(id), batch_max: at % 2 === 0 ? 100 : 1 };
    const answer = await api.tenant(apiKey, "POST", "/v1/webhooks", body);
    if (answer.status !== 201)
      throw new Error(`a webhook was answered ${answer.status}: ${JSON.stringify(answer.body)}`);
    const sinceEventId: number = answer.body.last_event_id ?? 0;
    book.told.set(id, { sinceEventId, taken: new Set(), latest: 0, repeats: 0 });
  }
}
