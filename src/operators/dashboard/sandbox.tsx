import PostalMime, { type Email } from "postal-mime";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { SandboxMessages } from "../../../clients/typescript/generated.ts";
import { call } from "./api.ts";
import { Form } from "./dialog.tsx";
import { useLoad } from "./load.ts";
import { Rendered } from "./rendered.tsx";
import { goTo } from "./route.ts";
import { Ago, Card, Facts, Page, ProblemBox, Time, Waiting } from "./ui.tsx";
import { channelName, count } from "./words.ts";

type Message = SandboxMessages["messages"][number];

const SHOWN = 50;
const REFRESH_MS = 5_000;

/** The messages that reached the providers' sandboxes; none has left this machine. */
export function SandboxPage({ query }: { readonly query: URLSearchParams }): JSX.Element {
  const to = query.get("to") ?? "";
  const asked = to === "" ? { limit: SHOWN } : { limit: SHOWN, to };
  const { data, problem, reload } = useLoad((signal) => call("listSandboxMessages", { query: asked }, { signal }), to);
  const isOff = problem?.status === 404;
  useEffect(() => {
    if (isOff) return undefined;
    const timer = setInterval(() => document.hidden || reload(), REFRESH_MS);
    return () => clearInterval(timer);
  }, [isOff, reload]);
  return (
    <Page
      title="Sandbox"
      intro="What the sandbox received in place of the providers. Nothing of it has left this machine."
    >
      {isOff ? (
        <p class="empty">There is no sandbox here: real providers are in use.</p>
      ) : (
        <>
          <div class="search">
            <Form
              label="Search"
              fields={[{ kind: "text", name: "to", label: "Recipient", value: to }]}
              submit={async (filled) => goTo(["sandbox"], { to: filled.text("to") })}
            />
          </div>
          <ProblemBox problem={problem} retry={reload} />
          {data === null ? problem === null ? <Waiting /> : null : <Inbox messages={data.messages} />}
        </>
      )}
    </Page>
  );
}

function toKey({ channel, received_at, to, source }: Message): string {
  return `${channel} ${received_at} ${to} ${source.length}`;
}

function Inbox({ messages }: { readonly messages: readonly Message[] }): JSX.Element {
  // An open message stays open when others arrive.
  const [chosen, setChosen] = useState(() => (messages[0] === undefined ? null : toKey(messages[0])));
  const shown = messages.find((message) => toKey(message) === chosen) ?? messages[0];
  if (shown === undefined) return <p class="empty">Nothing has arrived yet.</p>;
  return (
    <div class="inbox">
      <ul class="inbox-list" aria-label="Messages, newest first">
        {messages.map((message) => (
          <li key={toKey(message)}>
            <button
              type="button"
              aria-current={message === shown ? "true" : undefined}
              onClick={() => setChosen(toKey(message))}
            >
              <span class="inbox-to">{message.to}</span>
              <span class="inbox-subject">
                {message.subject === "" ? channelName(message.channel) : message.subject}
              </span>
              <span class="small">
                {channelName(message.channel)}, <Ago at={message.received_at} />
              </span>
            </button>
          </li>
        ))}
      </ul>
      <Card title={shown.subject === "" ? channelName(shown.channel) : shown.subject}>
        <Facts
          facts={[
            ["From", shown.from],
            ["To", shown.to],
            ["Received", <Time at={shown.received_at} />],
          ]}
        />
        {shown.channel === "email" ? (
          <Mail key={toKey(shown)} source={shown.source} />
        ) : (
          <pre tabIndex={0}>{pretty(shown.source)}</pre>
        )}
        <details>
          <summary>Source, {count(shown.source.length)} characters as they came over the wire</summary>
          <pre tabIndex={0}>{shown.source}</pre>
        </details>
      </Card>
    </div>
  );
}

function Mail({ source }: { readonly source: string }): JSX.Element {
  const { data, problem } = useLoad<Email>(() => PostalMime.parse(source), source);
  if (problem !== null) return <p class="empty">Its source cannot be read as a mail: {problem.text}</p>;
  if (data === null) return <Waiting />;
  if (data.html !== undefined) return <Rendered html={data.html} title={`The message “${data.subject ?? ""}”`} />;
  return <pre tabIndex={0}>{data.text ?? ""}</pre>;
}

function pretty(source: string): string {
  try {
    return JSON.stringify(JSON.parse(source), null, 2);
  } catch {
    return source;
  }
}
