import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { JsonObject, Template, TemplatePreview } from "../../../../clients/typescript/generated.ts";
import { call } from "../api.ts";
import { type Field, type Filled, Form, FormDialog } from "../dialog.tsx";
import { useAction, useLoad } from "../load.ts";
import { Rendered } from "../rendered.tsx";
import { hrefTo } from "../route.ts";
import { useMayChange } from "../session.tsx";
import { Badge, Facts, ProblemBox, Waiting } from "../ui.tsx";
import { bytes } from "../words.ts";

/** Edits a template, previews it, and sends a test. */
export function TemplateEditor({ id, template }: { readonly id: string; readonly template: Template }): JSX.Element {
  const mayChange = useMayChange();
  const [version, setVersion] = useState(0);
  const [isTesting, setTesting] = useState(false);
  const { slug, channel } = template;
  return (
    <div class="columns">
      <div>
        {mayChange ? (
          <Form
            label="Save"
            fields={channel === "email" ? emailFields(template) : walletFields(template)}
            submit={(filled) => call("putTemplate", { path: { id, slug }, body: toBody(template, filled) })}
            onDone={() => setVersion((before) => before + 1)}
          />
        ) : (
          <pre tabIndex={0}>{channel === "email" ? template.html : JSON.stringify(template.pass_data, null, 2)}</pre>
        )}
      </div>
      <div>
        <div class="card-head">
          <h3>Preview of what is saved</h3>
          {mayChange && channel === "email" ? (
            <button type="button" onClick={() => setTesting(true)}>
              Send a test
            </button>
          ) : null}
        </div>
        <Preview id={id} slug={slug} version={version} />
      </div>
      {isTesting ? <TestDialog id={id} slug={slug} onClose={() => setTesting(false)} /> : null}
    </div>
  );
}

function emailFields({ subject, html, text, topic = "" }: Extract<Template, { channel: "email" }>): readonly Field[] {
  return [
    { kind: "text", name: "subject", label: "Subject", value: subject, isRequired: true },
    { kind: "lines", name: "html", label: "HTML", value: html, rows: 16, isCode: true, isRequired: true },
    {
      kind: "lines",
      name: "text",
      label: "Plain text",
      value: text ?? "",
      rows: 6,
      hint: "Left empty, it is made of the HTML.",
    },
    {
      kind: "text",
      name: "topic",
      label: "Topic",
      value: topic,
      hint: "Readers unsubscribe from it alone. Left empty, they unsubscribe from all of the tenant's mail.",
    },
  ];
}

function walletFields({
  pass_data: data,
  style,
  pass_type: type,
}: Extract<Template, { channel: "wallet" }>): readonly Field[] {
  const styles = ["eventTicket", "boardingPass", "coupon", "storeCard", "generic"];
  const choices = ["", ...styles].map((value) => ({ value, label: value === "" ? "as the request says" : value }));
  return [
    ...(type === "apple"
      ? [{ kind: "choice", name: "style", label: "Style", value: style ?? "", choices } as const]
      : []),
    {
      kind: "lines",
      name: "pass_data",
      label: "Data of the pass (JSON)",
      value: JSON.stringify(data, null, 2),
      rows: 20,
      isCode: true,
    },
  ];
}

function toBody(template: Template, filled: Filled) {
  if (template.channel === "email") {
    const text = filled.raw("text");
    const body = { channel: "email", subject: filled.text("subject"), html: filled.raw("html") } as const;
    return { ...body, text: text.trim() === "" ? null : text, topic: filled.text("topic") || null };
  }
  const style = filled.text("style");
  const { pass_type } = template;
  const pass = { channel: "wallet", pass_type, pass_data: parseJson(filled.raw("pass_data")) };
  // The API checks it, member by member.
  return (style === "" ? pass : { ...pass, style }) as never;
}

/** Throws an error for people if the text is no JSON object. */
function parseJson(text: string): JsonObject {
  if (text.trim() === "") return {};
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`This is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new Error("A JSON object is needed: { … }");
  return value as JsonObject;
}

function Preview({
  id,
  slug,
  version,
}: {
  readonly id: string;
  readonly slug: string;
  readonly version: number;
}): JSX.Element {
  const [data, setData] = useState<JsonObject>({});
  const key = `${slug} ${version} ${JSON.stringify(data)}`;
  const made = useLoad((signal) => call("previewTemplate", { path: { id, slug }, body: { data } }, { signal }), key);
  const action = useAction();
  return (
    <>
      <ProblemBox problem={made.problem} retry={made.reload} />
      {made.data === null ? made.problem === null ? <Waiting /> : null : <Previewed preview={made.data} />}
      <Form
        label="Preview with these"
        action={action}
        fields={[{ kind: "lines", name: "data", label: "Values (JSON)", value: "{}", rows: 4, isCode: true }]}
        submit={async (filled) => setData(parseJson(filled.raw("data")))}
      />
    </>
  );
}

function Previewed({ preview }: { readonly preview: TemplatePreview }): JSX.Element {
  if (preview.channel === "wallet") return <pre tabIndex={0}>{JSON.stringify(preview.pass_data, null, 2)}</pre>;
  const { subject, html, missing, size_bytes: size, spam } = preview;
  return (
    <>
      <Facts
        facts={[
          ["Subject", subject],
          ["Without a value", missing.length === 0 ? "none" : missing.join(", ")],
          ["Size", bytes(size)],
          [
            "Spam score",
            <Badge tone={spam.score >= 5 ? "bad" : spam.score >= 3 ? "warn" : "good"}>{spam.score}</Badge>,
          ],
        ]}
      />
      {spam.rules.length === 0 ? null : (
        <ul class="rules small">
          {spam.rules.map(({ rule, score, description }) => (
            <li key={rule}>
              {score}: {description}
            </li>
          ))}
        </ul>
      )}
      <Rendered html={html} title="Preview of the template" />
    </>
  );
}

function TestDialog({
  id,
  slug,
  onClose,
}: {
  readonly id: string;
  readonly slug: string;
  onClose(): void;
}): JSX.Element {
  const [jobId, setJobId] = useState<string | null>(null);
  return (
    <FormDialog
      title={`Send one ${slug}`}
      intro={
        jobId === null ? (
          "It goes out as the tenant's own sends do, with its sender and suppressions."
        ) : (
          <p role="status">
            Queued: <a href={hrefTo(["messages", id, jobId])}>see what becomes of it</a>
          </p>
        )
      }
      label="Send"
      staysOpen
      fields={[
        { kind: "email", name: "to", label: "To", isRequired: true },
        { kind: "lines", name: "data", label: "Values (JSON)", value: "{}", rows: 4, isCode: true },
      ]}
      onClose={onClose}
      submit={async (filled) => {
        const body = { to_address: filled.text("to"), data: parseJson(filled.raw("data")) };
        setJobId((await call("testTemplate", { path: { id, slug }, body })).job_id);
      }}
    />
  );
}
