import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { JobHistory } from "../../../clients/typescript/generated.ts";
import { call, callPath } from "./api.ts";
import { outcomeOf, type Step, statusTone, timelineOf } from "./job-words.ts";
import { useAction, useLoad, useNow } from "./load.ts";
import { Rendered } from "./rendered.tsx";
import { hrefTo } from "./route.ts";
import { useMayChange } from "./session.tsx";
import { Ago, Badge, Card, Copy, Facts, Page, ProblemBox, Time, Waiting } from "./ui.tsx";
import { channelName, count } from "./words.ts";

interface JobProps {
  readonly tenantId: string;
  readonly jobId: string;
}

/** One message: what became of it and why, step by step, and what was sent. */
export function JobPage({ tenantId, jobId }: JobProps): JSX.Element {
  const job = useLoad((signal) => call("getJobHistory", { path: { id: tenantId, job_id: jobId } }, { signal }), jobId);
  const tenant = useLoad((signal) => call("getTenant", { path: { id: tenantId } }, { signal }), tenantId);
  const { data, problem, isLoading, reload } = job;
  const isPaused = data !== null && tenant.data?.paused.includes(data.channel) === true;
  return (
    <Page
      title={data === null ? "Message" : titleOf(data)}
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
          <Retry tenantId={tenantId} job={data} onRetried={reload} />
          <Timeline steps={timelineOf(data)} nextAt={data.next_attempt_at ?? null} />
          <Details tenantId={tenantId} job={data} />
          <Content tenantId={tenantId} jobId={jobId} />
        </>
      )}
    </Page>
  );
}

function titleOf({ channel, recipient_domain: domain }: JobHistory): string {
  return domain === undefined ? `${channelName(channel)} message` : `${channelName(channel)} to …@${domain}`;
}

function Outcome({ job, isPaused }: { readonly job: JobHistory; readonly isPaused: boolean }): JSX.Element {
  const now = useNow(1_000);
  const { tone, text } = outcomeOf(job, isPaused, now);
  return (
    <p class={`outcome ${tone}`}>
      <Badge tone={statusTone(job.status)}>{job.status}</Badge> {text}
    </p>
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
  const path = `/dash/api/tenants/${encodeURIComponent(tenantId)}/jobs/${encodeURIComponent(job.job_id)}/retry`;
  const retry = () => void run(() => callPath("POST", path)).then((isDone) => isDone && onRetried());
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

/** What was sent; the WhatsApp message as its template and parameters. */
type SentContent =
  | {
      readonly channel: "email";
      readonly from: string;
      readonly to: string;
      readonly subject: string;
      readonly html: string;
      readonly text: string | null;
    }
  | {
      readonly channel: "whatsapp";
      readonly to: string;
      readonly template: string;
      readonly language: string;
      readonly parameters: readonly string[];
    };

function Content({ tenantId, jobId }: JobProps): JSX.Element {
  const [isAsked, setAsked] = useState(false);
  return (
    <Card title="What was sent">
      {isAsked ? (
        <AskedContent tenantId={tenantId} jobId={jobId} />
      ) : (
        <p>
          <button type="button" onClick={() => setAsked(true)}>
            Show the content
          </button>
        </p>
      )}
    </Card>
  );
}

function AskedContent({ tenantId, jobId }: JobProps): JSX.Element {
  const path = `/dash/api/tenants/${encodeURIComponent(tenantId)}/jobs/${encodeURIComponent(jobId)}/content`;
  const { data, problem } = useLoad(() => callPath<SentContent>("GET", path), path);
  if (problem !== null)
    return problem.status === 404 ? <p class="empty">{problem.text}</p> : <ProblemBox problem={problem} />;
  if (data === null) return <Waiting />;
  if (data.channel === "whatsapp") {
    return (
      <Facts
        facts={[
          ["To", data.to],
          ["Template", `${data.template} (${data.language})`],
          ...data.parameters.map((value, at) => [`{{${at + 1}}}`, value] as const),
        ]}
      />
    );
  }
  return (
    <>
      <Facts
        facts={[
          ["From", data.from],
          ["To", data.to],
          ["Subject", data.subject],
        ]}
      />
      <Rendered html={data.html} title={`The message “${data.subject}”`} />
      {data.text === null ? null : (
        <details>
          <summary>As plain text</summary>
          <pre tabIndex={0}>{data.text}</pre>
        </details>
      )}
    </>
  );
}
