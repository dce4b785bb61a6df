/** A row a stage and name; what misses the objectives is greyed, the best is marked. Numbers are those of stages.csv. */

import { Box } from "@mui/material";

import type { Now, StageRow } from "../live/types";
import { count, FEW, percent, seconds, threeDigits } from "../numbers";
import { Slo, Validity } from "./Mark";
import { Plain, type Column } from "./Plain";
import { marked, reader, scheduled, type Read } from "./rows";

type Show = (value: number | string | null) => string;
/** The heading over neighbours, or none; title, unit, column, how it is shown. */
type Shown = [string, string, string, string, Show];

const latencies = (heading: string, metric: string, statistics: string[], show: Show): Shown[] =>
  statistics.map((statistic) => [heading, statistic, "", `${metric}_${statistic}`, show]);

const COUNTS: Shown[] = [
  ["", "Users", "", "users", count],
  ["", "Rate", "req/s", "rate_requested_per_s", threeDigits],
  ["", "Window", "s", "window_s", threeDigits],
  ["Requests", "ok", "", "requests_ok", count],
  ["Requests", "failed", "", "requests_failed", count],
  ["Requests", "short", "", "short_outputs", count],
];
const LATENCIES: Shown[] = [
  ...latencies("TTFT ms", "ttft_ms", ["mean", "p50", "p99"], threeDigits),
  ...latencies("TPOT ms", "tpot_ms", ["mean", "p50", "p99"], threeDigits),
  ...latencies("ITL ms", "itl_ms", ["p99"], threeDigits),
  ...latencies("E2E s", "e2e_ms", ["mean", "p99"], seconds),
];
const RATES: Shown[] = [
  ["req/s", "ok", "", "request_throughput_per_s", threeDigits],
  ["tok/s", "output", "", "output_tok_per_s", threeDigits],
  ["tok/s", "input", "", "input_tok_per_s", threeDigits],
  ["", "In flight", "mean", "concurrency_mean", threeDigits],
];
const GOODPUT: Shown[] = [
  ["Goodput", "req/s", "", "goodput_per_s", threeDigits],
  ["Goodput", "share", "", "attainment_ratio", percent],
];

/** Columns that are left out where no row has more than this to say. */
const OPTIONAL: Record<string, number | null> = {
  rate_requested_per_s: null,
  short_outputs: 0,
  goodput_per_s: null,
  attainment_ratio: null,
};

/** A line of the table: a row of a stage, or its latencies from the schedule. */
interface Line {
  row: StageRow;
  fromSchedule: boolean;
  part: boolean;
}

export function linesOf(rows: StageRow[], read: Read): Line[] {
  return rows.flatMap((row): Line[] => {
    if (row.name !== "all") {
      const names = rows.filter((other) => other.stage === row.stage && other.phase === row.phase && other.name !== "all");
      return names.length > 1 ? [{ row, fromSchedule: false, part: true }] : [];
    }
    const own: Line = { row, fromSchedule: false, part: false };
    return read(row, "load") === "open loop" ? [own, { row, fromSchedule: true, part: true }] : [own];
  });
}

/** Stages stand before their names, as the eye expects; the file has them behind. What was not measured is not judged. */
function inOrder(measured: StageRow[], excluded: StageRow[]): StageRow[] {
  const unjudged = excluded.map((row): StageRow => ({ ...row, verdict: null, slo: [], meets_slo: null, best: false }));
  const all = [...measured, ...unjudged];
  const windows = [...new Set(all.map(({ stage }) => stage))].flatMap((stage) => {
    const own = all.filter((row) => row.stage === stage);
    return [...new Set(own.map(({ phase }) => phase))].map((phase) => own.filter((row) => row.phase === phase));
  });
  return windows.flatMap((own) => [...own.filter(({ name }) => name === "all"), ...own.filter(({ name }) => name !== "all")]);
}

function cellOf(read: Read, [, , , column, show]: Shown, line: Line): string {
  if (!line.fromSchedule) return marked(show(read(line.row, column)), read, line.row, column, FEW);
  const from = scheduled(column);
  return from === column ? "" : marked(show(read(line.row, from)), read, line.row, from, FEW);
}

function label(line: Line) {
  const text = line.fromSchedule ? "from schedule" : line.part ? line.row.name : line.row.stage;
  return (
    <Box component="span" sx={{ pl: line.part ? 1 : 0, color: line.part ? "text.secondary" : "inherit" }}>
      {text}
    </Box>
  );
}

export function StageTable({ now, withExcluded = false }: { now: Now; withExcluded?: boolean }) {
  const read = reader(now.columns);
  const all = inOrder(now.rows, withExcluded ? now.excluded : []);
  const lines = linesOf(all, read);
  const hasAny = (column: string) => all.some((row) => read(row, column) !== null && read(row, column) !== OPTIONAL[column]);
  const shown = [...COUNTS, ...LATENCIES, ...RATES, ...GOODPUT].filter(
    ([, , , column]) => !(column in OPTIONAL) || hasAny(column),
  );
  const columns: Column<Line>[] = [
    { title: "Stage", cell: label, left: true },
    ...(withExcluded ? [{ title: "Phase", cell: ({ row }: Line) => row.phase, left: true }] : []),
    { title: "Validity", left: true, cell: ({ row, part }) => (part ? "" : <Validity verdict={row.verdict} />) },
    ...(all.some((row) => row.slo.length > 0)
      ? [{ title: "SLO", left: true, cell: ({ row, part }: Line) => (part ? "" : <Slo best={row.best} clauses={row.slo} />) }]
      : []),
    ...shown.map((column): Column<Line> => ({
      group: column[0],
      title: column[1],
      unit: column[2],
      help: now.formulas[column[3]]?.formula,
      cell: (line) => cellOf(read, column, line),
    })),
    ...(all.some((row) => row.tok_per_s_per_gpu !== null)
      ? [{ title: "Per GPU", unit: "tok/s", cell: ({ row, part }: Line) => (part ? "" : threeDigits(row.tok_per_s_per_gpu)) }]
      : []),
    ...(all.some((row) => row.cost_per_million_tokens !== null)
      ? [{ title: "Cost", unit: "per M tok", cell: ({ row, part }: Line) => (part ? "" : threeDigits(row.cost_per_million_tokens)) }]
      : []),
  ];
  const isOpen = lines.some(({ fromSchedule }) => fromSchedule);
  const texts = lines.flatMap((line) => shown.map((column) => cellOf(read, column, line)));
  return (
    <>
      <Plain
        columns={columns}
        dimmed={({ row }) => row.meets_slo === false || (withExcluded && row.phase !== "steady")}
        empty="No stage has reached its measured window yet."
        keyOf={({ row, fromSchedule }) => `${row.stage}/${row.phase}/${row.name}/${String(fromSchedule)}`}
        label="Stages"
        marked={({ row, part }) => row.best && !part}
        rows={lines}
      />
      <Box sx={{ color: "text.secondary", fontSize: 12, mt: 0.5 }}>
        {[
          texts.some((text) => text.endsWith("*")) ? "* p99 of fewer than 100 samples." : "",
          texts.some((text) => text.startsWith("≥")) ? "≥ arrivals were dropped at the stage's end: the true value is higher." : "",
          isOpen ? "" : "Closed loop: latencies count from each request's own start.",
          ...Object.entries(now.skipped).map(([stage, why]) => `${stage} was not run: ${why}.`),
        ]
          .filter(Boolean)
          .join(" ")}
      </Box>
    </>
  );
}
