import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Template } from "../../../../clients/typescript/generated.ts";
import { call } from "../api.ts";
import { FormDialog } from "../dialog.tsx";
import { useLoad } from "../load.ts";
import { goTo, hrefTo } from "../route.ts";
import { ChangeButton, useMayChange } from "../session.tsx";
import type { TabProps } from "../tab.ts";
import { Card, type Column, ProblemBox, Show, Table, Waiting } from "../ui.tsx";
import { channelName } from "../words.ts";
import { TemplateEditor } from "./template-editor.tsx";

/** A tenant's templates; with a slug, one of them. */
export function TemplatesTab({ slug, ...props }: TabProps & { readonly slug: string | null }): JSX.Element {
  return slug === null ? <List {...props} /> : <One key={slug} id={props.tenant.id} slug={slug} />;
}

function List({ tenant: { id } }: TabProps): JSX.Element {
  const loaded = useLoad((signal) => call("listTemplates", { path: { id } }, { signal }), id);
  const [isAdding, setAdding] = useState(false);
  return (
    <Card
      title="Templates"
      actions={
        <ChangeButton style="primary" onClick={() => setAdding(true)}>
          Add a template
        </ChangeButton>
      }
    >
      <Show loaded={loaded}>
        {(data) => (
          <Table
            caption="Templates"
            rows={data.templates}
            keyOf={({ slug }) => slug}
            empty="There is none yet."
            columns={buildColumns(id)}
          />
        )}
      </Show>
      {isAdding ? (
        <FormDialog
          title="Add a template"
          label="Add"
          fields={[
            {
              kind: "text",
              name: "slug",
              label: "Name in requests",
              isRequired: true,
              hint: "Lower-case letters, digits and hyphens, such as welcome.",
            },
            { kind: "choice", name: "channel", label: "Channel", value: "email", choices: NEW_KINDS },
          ]}
          onClose={() => setAdding(false)}
          submit={async (filled) => {
            const slug = filled.text("slug");
            await call("putTemplate", { path: { id, slug }, body: createDraft(filled.text("channel")) });
            goTo(["tenants", id, "templates", slug]);
          }}
        />
      ) : null}
    </Card>
  );
}

const NEW_KINDS = [
  { value: "email", label: "E-mail" },
  { value: "apple", label: "Wallet pass for Apple" },
  { value: "google", label: "Wallet pass for Google" },
];

/** Creates the initial content of a new template. */
function createDraft(kind: string) {
  if (kind === "apple" || kind === "google") return { channel: "wallet", pass_type: kind, pass_data: {} } as const;
  return { channel: "email", subject: "Hello {{.name}}", html: "<p>Hello {{.name}}</p>", text: null } as const;
}

function buildColumns(id: string): readonly Column<Template>[] {
  return [
    { head: "Name", isHead: true, cell: ({ slug }) => <a href={hrefTo(["tenants", id, "templates", slug])}>{slug}</a> },
    { head: "Channel", cell: ({ channel }) => channelName(channel) },
    {
      head: "Subject or kind",
      isLong: true,
      cell: (template) => (template.channel === "email" ? template.subject : template.pass_type),
    },
  ];
}

function One({ id, slug }: { readonly id: string; readonly slug: string }): JSX.Element {
  const { data, problem, reload } = useLoad((signal) => call("getTemplate", { path: { id, slug } }, { signal }), slug);
  const [isDeleting, setDeleting] = useState(false);
  const mayChange = useMayChange();
  return (
    <Card
      title={`Template ${slug}`}
      actions={
        <>
          <a href={hrefTo(["tenants", id, "templates"])}>All templates</a>
          {mayChange ? (
            <button type="button" class="danger-quiet" onClick={() => setDeleting(true)}>
              Delete
            </button>
          ) : null}
        </>
      }
    >
      <ProblemBox problem={problem} retry={reload} />
      {data === null ? problem === null ? <Waiting /> : null : <TemplateEditor id={id} template={data} />}
      {isDeleting ? (
        <FormDialog
          title={`Delete ${slug}?`}
          intro="Sends that name it are refused from then on."
          label="Delete"
          isDangerous
          fields={[]}
          onClose={() => setDeleting(false)}
          submit={async () => {
            await call("deleteTemplate", { path: { id, slug } });
            goTo(["tenants", id, "templates"]);
          }}
        />
      ) : null}
    </Card>
  );
}
