import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { JobContent, JobHistory } from "../../../clients/typescript/generated.ts";
import { call } from "./api.ts";
import { buildTimeline, describeOutcome, type Step, shortOutcome } from "./job-words.ts";
import { useAction, useLoad, useNow } from "./load.ts";
import { Rendered } from "./rendered.tsx";
import { hrefTo } from "./route.ts";
import { useMayChange } from "./session.tsx";
import { Ago, Badge, Card, Copy, Facts, Page, ProblemBox, Time, Waiting } from "./ui.tsx";
import { channelName, count, counted } from "./words.ts";

interface JobProps {
  readonly tenantId: string;
  readonly jobId: string;
}

/** The page of one message: its outcome with the reasons, step by step, and its content. */
export function JobPage({ tenantId, jobId }: JobProps): JSX.Element {
  const job = useLoad((signal) => call("getJobHistory", { path: { id: tenantId, job_id: jobId } }, { signal }), jobId);
  const tenant = useLoad((signal) => call("getTenant", { path: { id: tenantId } }, { signal }), tenantId);
  const { data, problem, isLoading, reload } = job;
  const isPaused = data !== null && tenant.data?.paused.includes(data.channel) === true;
  return (
    <Page
      title={data === null ? "Message" : formatTitle(data)}
      intro={<a href={hrefTo(["messages"], { tenant: tenantId })}>All messages of {tenant.data?.name ?? tenantId}</a>}
      actions={
        <button type="button" onClick={reload} disabled={isLoading}>
          Look again
        </button>
      }
    >
      <ProblemBox problem={problem} retry={reload} />
      {data === null ? (
        isLoading && <Waiting />
      ) : (
        <>
          <Outcome job={data} isPaused={isPaused} />
          {data.status === "pending" || data.status === "running" ? <Away channel={data.channel} /> : null}
          <Retry tenantId={tenantId} job={data} onRetried={reload} />
          <Timeline steps={buildTimeline(data)} nextAt={data.next_attempt_at ?? null} />
          <Details tenantId={tenantId} job={data} />
          <Content tenantId={tenantId} jobId={jobId} />
        </>
      )}
    </Page>
  );
}

function formatTitle({ channel, recipient_domain: domain }: JobHistory): string {
  return domain === undefined ? `${channelName(channel)} message` : `${channelName(channel)} to …@${domain}`;
}

function Outcome({ job, isPaused }: { readonly job: JobHistory; readonly isPaused: boolean }): JSX.Element {
  const now = useNow(1_000);
  const { tone, text } = describeOutcome(job, isPaused, now);
  const short = shortOutcome(job);
  return (
    <p class={`outcome ${tone}`}>
      <Badge tone={short.tone}>{short.text}</Badge> {text}
    </p>
  );
}

/** The unavailable relays of a channel, one of which the message may be waiting for. */
function Away({ channel }: { readonly channel: JobHistory["channel"] }): JSX.Element | null {
  const { data } = useLoad((signal) => call("getOverview", {}, { signal }), channel);
  const away = (data?.processes ?? []).flatMap(({ breakers }) => breakers).filter((each) => each.channel === channel);
  if (away.length === 0) return null;
  return (
    <div class="note">
      <p>It may wait for one of these, which are away. That costs no try.</p>
      <ul class="rules">
        {away.map(({ relay, since, waiting_jobs }) => (
          <li key={`${relay} ${since}`}>
            {relay}, since <Ago at={since} />; {counted(waiting_jobs, "job")} held
          </li>
        ))}
      </ul>
    </div>
  );
}

function Retry({
  tenantId,
  job,
  onRetried,
}: {
  readonly tenantId: string;
  readonly job: JobHistory;
  onRetried(): void;
}): JSX.Element | null {
  const mayChange = useMayChange();
  const { isRunning, problem, run } = useAction();
  if (job.status !== "failed" || !mayChange) return null;
  const path = { id: tenantId, job_id: job.job_id };
  const retry = () => void run(() => call("retryJob", { path })).then((isDone) => isDone && onRetried());
  return (
    <>
      <p>
        <button type="button" class="primary" disabled={isRunning} onClick={retry}>
          Send it again
        </button>
      </p>
      <ProblemBox problem={problem} />
    </>
  );
}

function Timeline({ steps, nextAt }: { readonly steps: readonly Step[]; readonly nextAt: string | null }): JSX.Element {
  return (
    <Card title="What happened">
      <ol class="timeline">
        {steps.map(({ at, tone, title, detail }) => (
          <li key={`${at} ${title}`} class={tone}>
            <p class="step">
              <Badge tone={tone}>{title}</Badge> <Time at={at} />
            </p>
            {detail === null ? null : <p class="said">{detail}</p>}
          </li>
        ))}
        {nextAt === null ? null : (
          <li class="busy">
            <p class="step">
              <Badge tone="busy">Next try</Badge> <Ago at={nextAt} /> (<Time at={nextAt} />)
            </p>
          </li>
        )}
      </ol>
    </Card>
  );
}

function Details({ tenantId, job }: { readonly tenantId: string; readonly job: JobHistory }): JSX.Element {
  const spam = job.result !== undefined && "spam_score" in job.result ? job.result.spam_score : undefined;
  return (
    <Card title="Details">
      <Facts
        facts={[
          ["Job", <Copy text={job.job_id} label="the job id" />],
          ["Tenant", <a href={hrefTo(["tenants", tenantId])}>{tenantId}</a>],
          ["Channel", channelName(job.channel)],
          ["Tries", count(job.attempts)],
          ["Template", job.template ?? "none"],
          ["Accepted", <Time at={job.created_at} />],
          ["Ended", job.finished_at === undefined ? "not yet" : <Time at={job.finished_at} />],
          ...(spam === undefined ? [] : ([["Spam score", spam]] as const)),
        ]}
      />
    </Card>
  );
}

function Content({ tenantId, jobId }: JobProps): JSX.Element {
  const [isAsked, setAsked] = useState(false);
  const mayLook = useMayChange();
  return (
    <Card title="What was sent">
      {isAsked ? (
        <AskedContent tenantId={tenantId} jobId={jobId} />
      ) : mayLook ? (
        <p>
          <button type="button" onClick={() => setAsked(true)}>
            Show the content
          </button>{" "}
          <span class="small">It is personal data: the audit log will say who looked.</span>
        </p>
      ) : (
        <p class="empty">It is personal data: operators with the role write can look at it.</p>
      )}
    </Card>
  );
}

function AskedContent({ tenantId, jobId }: JobProps): JSX.Element {
  const path = { id: tenantId, job_id: jobId };
  const { data, problem } = useLoad((signal) => call("getJobContent", { path }, { signal }), jobId);
  if (problem?.status === 404) return <p class="empty">{problem.text}</p>;
  if (problem !== null) return <ProblemBox problem={problem} />;
  return data === null ? <Waiting /> : <ShownContent content={data} />;
}

function chatFacts(content: Extract<JobContent, { channel: "whatsapp" }>): readonly (readonly [string, string])[] {
  const {
    to,
    template,
    language,
    parameters = [],
    named_parameters = {},
    header,
    buttons = [],
    components = [],
    text,
    message,
  } = content;
  if (text !== undefined) {
    return [
      ["To", to],
      ["Text", text.body],
    ];
  }
  if (message !== undefined) {
    return [
      ["To", to],
      ["Message", shown(message)],
    ];
  }
  const byName = [...parameters.entries()].map(([at, value]) => [String(at + 1), value] as const);
  const values = [...byName, ...Object.entries(named_parameters)].map(
    ([name, value]) => [`{{${name}}}`, shown(value)] as const,
  );
  return [
    ["To", to],
    ["Template", `${template ?? ""} (${language ?? ""})`],
    ...(header === undefined ? [] : [["Header", shown(header)] as const]),
    ...values,
    ...buttons.map(
      ({ index, sub_type, value, parameters: more }) =>
        [`Button ${String(index)}`, `${String(sub_type)}: ${shown(value ?? more)}`] as const,
    ),
    ...components.map((component) => ["Component", shown(component)] as const),
  ];
}

function shown(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function ShownContent({ content }: { readonly content: JobContent }): JSX.Element {
  if (content.channel === "whatsapp") {
    return <Facts facts={chatFacts(content)} />;
  }
  if (content.channel === "wallet") {
    const { action, pass_id: id, version, pass } = content;
    return (
      <>
        <Facts
          facts={[
            ["Pass", <code>{id}</code>],
            ["Step", action],
            ["Version", version],
          ]}
        />
        <pre tabIndex={0}>{JSON.stringify(pass, null, 2)}</pre>
      </>
    );
  }
  const { from, to, subject, html, text } = content;
  return (
    <>
      <Facts
        facts={[
          ["From", from ?? "the platform's sender"],
          ["To", to],
          ["Subject", subject],
        ]}
      />
      <Rendered html={html} title={`The message “${subject}”`} />
      {text === null ? null : (
        <details>
          <summary>As plain text</summary>
          <pre tabIndex={0}>{text}</pre>
        </details>
      )}
    </>
  );
}
