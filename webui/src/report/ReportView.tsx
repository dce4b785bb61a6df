/** The whole report: the verdict first, then why it can be believed, then everything behind it. */

import { Alert, Box, Paper, Typography } from "@mui/material";

import { Charts } from "../charts/Charts";
import { Framed, Row } from "../charts/Frame";
import { FailureTable, OutcomeTable } from "../tables/Outcomes";
import { Plain } from "../tables/Plain";
import { StageTable } from "../tables/StageTable";
import { DistributionCharts } from "../views/DistributionView";
import { Section } from "../views/Section";
import { Curve } from "./Curve";
import { Formulas, Tested } from "./Tested";
import type { Report } from "./types";
import { SloTable, ValidityTable } from "./Verdicts";

const TTFT = [
  { name: "TTFT p50", column: "ttft_ms_p50", colour: "blue" },
  { name: "TTFT p99", column: "ttft_ms_p99", colour: "red", dash: "dashed" },
] as const;
const TPOT = [
  { name: "TPOT p50", column: "tpot_ms_p50", colour: "blue" },
  { name: "TPOT p99", column: "tpot_ms_p99", colour: "red", dash: "dashed" },
] as const;
const CURVES = [
  { title: "TTFT against throughput", of: [...TTFT] },
  { title: "TPOT against throughput", of: [...TPOT] },
];

function Head({ report }: { report: Report }) {
  const { run } = report.now;
  const about = [run.model, run.shape, ...Object.entries(run.tags).map(([key, value]) => `${key}=${value}`), run.note];
  const gone = Object.entries(report.not_whole).map(([file, why]) => `${file} is not whole: ${why}.`);
  return (
    <Box component="header">
      <Typography component="h1" sx={{ fontSize: 22, fontWeight: 600, lineHeight: 1.35, overflowWrap: "anywhere" }}>
        {report.verdict}
      </Typography>
      <Typography color="text.secondary" sx={{ mt: 1, overflowWrap: "anywhere" }} variant="body2">
        {[run.run_id, report.now.state, ...about].filter(Boolean).join(" · ")}
      </Typography>
      {gone.length > 0 && (
        <Alert severity="error" sx={{ mt: 1.5 }}>
          {gone.join(" ")}
        </Alert>
      )}
    </Box>
  );
}

function Workers({ report }: { report: Report }) {
  return (
    <Plain
      columns={[
        { title: "Worker", left: true, cell: ({ worker }) => worker },
        { title: "Host", left: true, cell: ({ host }) => host },
        { title: "Timestamps", left: true, cell: ({ timestamp_source }) => timestamp_source },
        { title: "Clock offset", unit: "ms", cell: ({ clock_offset_ms: offset }) => offset?.toFixed(3) ?? "–" },
        { title: "State", left: true, cell: ({ lost }) => (lost ? "lost" : "reported to the end") },
      ]}
      empty="No worker has reported."
      keyOf={({ worker }) => worker}
      label="Workers"
      rows={report.now.workers}
    />
  );
}

export function ReportView({ report, dark }: { report: Report; dark: boolean }) {
  const { now, history } = report;
  return (
    <Box className="sheet" sx={{ maxWidth: 1560, mx: "auto", p: { xs: 2, xl: 3 } }}>
      <Head report={report} />
      <Section title="Objectives">
        <SloTable now={now} />
      </Section>
      <Section title="Can the measurement be trusted?">
        <ValidityTable validity={report.validity} />
      </Section>
      <Section title="What was tested">
        <Tested report={report} />
      </Section>
      <Section title="Stages">
        <StageTable now={now} />
      </Section>
      <Section title="Throughput against latency">
        <Row of={2}>
          {CURVES.map(({ title, of }) => (
            <Framed key={title}>
              <Curve dark={dark} now={now} of={of} title={title} unit="ms" />
            </Framed>
          ))}
        </Row>
      </Section>
      {history.points.length > 0 && (
        <Box className="new-sheet">
          <Section title="Over time">
            <Typography color="text.secondary" sx={{ mb: 1 }} variant="body2">
              Percentiles are those of the requests that ended in the last 10 s, or in the point&apos;s own time where it is
              longer; ITL is then the greatest 10 s value in it. Times outside of the measured windows are grey.
            </Typography>
            <Charts dark={dark} history={history} />
          </Section>
        </Box>
      )}
      {report.distributions.length > 0 && (
        <Box className="new-sheet">
          <Section title="Distributions">
            <DistributionCharts dark={dark} stages={report.distributions} />
          </Section>
        </Box>
      )}
      <Section title="Outcomes">
        <OutcomeTable now={now} />
      </Section>
      {now.failures.length > 0 && (
        <Section title="Failures of all phases, with the first message of each kind">
          <FailureTable failures={now.failures} />
        </Section>
      )}
      {now.excluded.length > 0 && (
        <Section title="Not in the numbers above: ramp, warm-up, drain">
          <StageTable now={{ ...now, rows: [], skipped: {} }} withExcluded />
        </Section>
      )}
      <Section title="Workers">
        <Workers report={report} />
      </Section>
      <Section title="How the numbers are defined">
        <Typography color="text.secondary" sx={{ mb: 1 }} variant="body2">
          Instants: scheduled (due by the arrival schedule), start (immediately before the first system call), first_token and
          last_token (first and last token-bearing event, by the kernel&apos;s receive time where there is one). A request that
          failed is in no latency of the others. Percentiles are nearest-rank with a relative error of at most 0.5 %.
        </Typography>
        <Formulas formulas={report.formulas} />
      </Section>
      <Section title="How to repeat this run">
        <Paper component="pre" sx={{ p: 1.5, m: 0, whiteSpace: "pre-wrap", overflowWrap: "anywhere", fontSize: 13 }}>
          {[report.repeat_command, `locust --config run.conf    # in the folder of this run`].filter(Boolean).join("\n")}
        </Paper>
      </Section>
    </Box>
  );
}
