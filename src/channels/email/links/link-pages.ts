import { html, type InLanguages, type Markup, type PageContent } from "../../../http/page.ts";

/* The pages behind the links in e-mails, in all languages of the service. */

/** The reader's choices: to leave the message's topic, to leave altogether, and to undo either. */
export const CHOICES = ["topic", "all", "undo_topic", "undo_all"] as const;
export type Choice = (typeof CHOICES)[number];

/** The state of a reader who follows a message's unsubscribe link. */
export interface Subscription {
  readonly tenantName: string;
  /** The message's topic; null if it has none. */
  readonly topic: string | null;
  readonly hasLeftTopic: boolean;
  readonly hasLeftAll: boolean;
}

/** The reader's last action; null before the first one. */
type Done = "left" | "returned" | null;

/** Builds the page behind an unsubscribe link: the present state, and the reader's choices. */
export function subscriptionPage(subscription: Subscription, done: Done): InLanguages<PageContent> {
  const { topic, hasLeftTopic, hasLeftAll } = subscription;
  const names = formatNames(subscription);
  if (hasLeftAll) return leftAllPage(names, done);
  if (topic !== null && hasLeftTopic) return leftTopicPage(names, done);
  if (done === "returned") return returnedPage(names, topic !== null);
  return topic === null ? askPage(names) : askWhichPage(names);
}

function askPage({ sender: { en, es } }: Names): InLanguages<PageContent> {
  return {
    en: {
      title: "Unsubscribe",
      main: html`<p>Do you want to stop receiving emails from ${en}?</p>
<p class="soft">This stops every email that they send to your address through this service, receipts and reminders too. You can undo it on this page.</p>
${choiceForm("all", "Unsubscribe")}`,
    },
    es: {
      title: "Darse de baja",
      main: html`<p>¿Quiere dejar de recibir correos de ${es}?</p>
<p class="soft">Dejará de recibir todos los correos que este remitente le envía mediante este servicio, también recibos y recordatorios. Podrá deshacerlo en esta página.</p>
${choiceForm("all", "Darme de baja")}`,
    },
  };
}

function askWhichPage({ sender: { en, es }, topic }: Names): InLanguages<PageContent> {
  return {
    en: {
      title: "Unsubscribe",
      main: html`<p>Which emails from ${en} do you want to stop?</p>
${choiceForm("topic", html`Only “${topic}”`)}
${choiceForm("all", "All emails", "quiet")}
<p class="soft below">All emails means every email that they send to your address through this service, receipts and password resets too. You can undo either on this page.</p>`,
    },
    es: {
      title: "Darse de baja",
      main: html`<p>¿Qué correos de ${es} quiere dejar de recibir?</p>
${choiceForm("topic", html`Solo «${topic}»`)}
${choiceForm("all", "Todos los correos", "quiet")}
<p class="soft below">Todos los correos son todos los que este remitente le envía mediante este servicio, también recibos y cambios de contraseña. Podrá deshacerlo en esta página.</p>`,
    },
  };
}

function leftAllPage({ sender: { en, es } }: Names, done: Done): InLanguages<PageContent> {
  return {
    en: {
      ...leftTitle(done).en,
      main:
        done === "left"
          ? html`<p>You will receive no more emails from ${en} at this address.</p>
<p class="soft">An email that is already on its way may still arrive. You can close this page.</p>
${choiceForm("undo_all", "Undo", "quiet")}`
          : html`<p>You receive no more emails from ${en} at this address. There is nothing left to do.</p>
${choiceForm("undo_all", "Receive emails again", "quiet")}`,
    },
    es: {
      ...leftTitle(done).es,
      main:
        done === "left"
          ? html`<p>Ya no recibirá más correos de ${es} en esta dirección.</p>
<p class="soft">Si un correo ya está en camino, aún puede llegar. Puede cerrar esta página.</p>
${choiceForm("undo_all", "Deshacer", "quiet")}`
          : html`<p>Ya no recibe correos de ${es} en esta dirección. No tiene que hacer nada más.</p>
${choiceForm("undo_all", "Volver a recibir correos", "quiet")}`,
    },
  };
}

function leftTopicPage({ sender: { en, es }, topic }: Names, done: Done): InLanguages<PageContent> {
  return {
    en: {
      ...leftTitle(done).en,
      main: html`<p>You receive no more emails on “${topic}” from ${en} at this address.</p>
<p class="soft">Their other emails still arrive, receipts and password resets for example.</p>
${choiceForm("undo_topic", done === "left" ? "Undo" : html`Receive “${topic}” again`, "quiet")}
${choiceForm("all", "Stop all emails", "quiet")}`,
    },
    es: {
      ...leftTitle(done).es,
      main: html`<p>Ya no recibe correos sobre «${topic}» de ${es} en esta dirección.</p>
<p class="soft">Seguirá recibiendo los demás, por ejemplo recibos y cambios de contraseña.</p>
${choiceForm("undo_topic", done === "left" ? "Deshacer" : html`Volver a recibir «${topic}»`, "quiet")}
${choiceForm("all", "Dejar todos los correos", "quiet")}`,
    },
  };
}

function leftTitle(done: Done) {
  return done === "left"
    ? { en: { title: "You are unsubscribed" }, es: { title: "Se ha dado de baja" } }
    : { en: { title: "You are already unsubscribed" }, es: { title: "Ya se había dado de baja" } };
}

function returnedPage({ sender: { en, es }, topic }: Names, hasTopic: boolean): InLanguages<PageContent> {
  return {
    en: {
      title: "You are subscribed again",
      main: hasTopic
        ? html`<p>You receive emails from ${en} at this address again, those on “${topic}” too.</p>
${choiceForm("topic", html`Stop “${topic}”`, "quiet")}`
        : html`<p>You receive emails from ${en} at this address again.</p>
${choiceForm("all", "Unsubscribe", "quiet")}`,
    },
    es: {
      title: "Vuelve a estar suscrito",
      main: hasTopic
        ? html`<p>Vuelve a recibir correos de ${es} en esta dirección, también sobre «${topic}».</p>
${choiceForm("topic", html`Dejar «${topic}»`, "quiet")}`
        : html`<p>Vuelve a recibir correos de ${es} en esta dirección.</p>
${choiceForm("all", "Darme de baja", "quiet")}`,
    },
  };
}

/** The page for an invalid token: cut off, altered, or signed with a key that is no longer in use. */
export const BROKEN_UNSUBSCRIBE: InLanguages<PageContent> = {
  en: {
    title: "This link does not work",
    main: html`<p>It is incomplete, was changed, or is too old. So we cannot tell which emails you want to stop, and nothing has changed.</p>
<p>Open the email and click the link again, or use your mail program’s own unsubscribe button. If that does not work either, ask the sender.</p>`,
  },
  es: {
    title: "Este enlace no funciona",
    main: html`<p>Está incompleto, ha sido modificado o es demasiado antiguo. Por eso no sabemos qué correos quiere dejar de recibir, y nada ha cambiado.</p>
<p>Abra el correo y pulse el enlace otra vez, o use el botón de su programa de correo para darse de baja. Si tampoco funciona, pregunte al remitente.</p>`,
  },
};

/** As `BROKEN_UNSUBSCRIBE`, for a link that should lead somewhere. */
export const BROKEN_CLICK: InLanguages<PageContent> = {
  en: {
    title: "This link does not work",
    main: html`<p>It is incomplete, was changed, or is too old. So we do not know where it should lead.</p>
<p>Open the email and click the link again. If that does not work either, ask the sender.</p>`,
  },
  es: {
    title: "Este enlace no funciona",
    main: html`<p>Está incompleto, ha sido modificado o es demasiado antiguo. Por eso no sabemos adónde debe llevar.</p>
<p>Abra el correo y pulse el enlace otra vez. Si tampoco funciona, pregunte al remitente.</p>`,
  },
};

/** The page after an internal error. */
export const FAILED: InLanguages<PageContent> = {
  en: {
    title: "Something went wrong",
    main: html`<p>The fault is on our side. Please try again in a few minutes.</p>
<p><a href="">Try again</a></p>`,
  },
  es: {
    title: "Algo ha fallado",
    main: html`<p>El fallo es nuestro. Vuelva a intentarlo dentro de unos minutos.</p>
<p><a href="">Volver a intentarlo</a></p>`,
  },
};

/** The page for a failed unsubscribe click that may or may not have been recorded. */
export const UNSUBSCRIBE_FAILED: InLanguages<PageContent> = {
  en: {
    title: "You may still be subscribed",
    main: html`<p>Something went wrong on our side. Please try again in a few minutes: a second click does no harm.</p>
${againForm("Try again")}`,
  },
  es: {
    title: "Es posible que aún no se haya dado de baja",
    main: html`<p>Algo ha fallado por nuestra parte. Vuelva a intentarlo dentro de unos minutos: pulsar dos veces no causa problemas.</p>
${againForm("Volver a intentarlo")}`,
  },
};

/** Builds a form that names its own choice, because the page's address may have another one. */
function choiceForm(choice: Choice, button: string | Markup, style: "primary" | "quiet" = "primary"): Markup {
  return html`<form method="post" action="?choice=${choice}">
<input type="hidden" name="List-Unsubscribe" value="One-Click">
<button type="submit"${style === "quiet" ? html` class="quiet"` : ""}>${button}</button>
</form>`;
}

/** Sends the same choice once more. */
function againForm(button: string): Markup {
  return html`<form method="post">
<input type="hidden" name="List-Unsubscribe" value="One-Click">
<button type="submit">${button}</button>
</form>`;
}

/** Names on the pages, isolated so that their writing direction does not reorder the words around them. */
interface Names {
  readonly sender: InLanguages<Markup>;
  readonly topic: Markup;
}

function formatNames({ tenantName, topic }: Subscription): Names {
  const name = shownName(tenantName);
  const shown = html`<bdi><strong>${name}</strong></bdi>`;
  return {
    sender: name === "" ? { en: html`this sender`, es: html`este remitente` } : { en: shown, es: shown },
    topic: html`<bdi>${shownName(topic ?? "")}</bdi>`,
  };
}

const NAME_CHARS_MAX = 100;

/**
 * Makes a name safe to display: without invisible characters or ones that change the direction of other text, without
 * piles of accents that cover other lines, and of limited length. Empty if no character is left.
 */
function shownName(name: string): string {
  const visible = name
    // More than any page displays, and short enough for the steps that follow.
    .slice(0, 20 * NAME_CHARS_MAX)
    .toWellFormed()
    .replace(/[[\p{Bidi_Control}\p{Default_Ignorable_Code_Point}]--[\p{Join_Control}\p{Variation_Selector}]]/gv, "")
    .replace(/[\p{Cc}\p{Z}]+/gu, " ")
    .replace(/(\p{M}{4})\p{M}+/gu, "$1")
    .trim();
  const chars = Array.from(visible);
  const isBlank = !/[\p{L}\p{N}\p{P}\p{S}]/u.test(visible);
  if (isBlank) return "";
  return chars.length > NAME_CHARS_MAX ? `${chars.slice(0, NAME_CHARS_MAX - 1).join("")}…` : visible;
}
