/** What was tested, with what, and how the numbers are defined. */

import { Box } from "@mui/material";

import { Row } from "../charts/Frame";
import { Plain } from "../tables/Plain";
import type { MetricFormula, Report } from "./types";

const isFlat = (values: unknown[]) => values.every((value) => typeof value !== "object");

/** A value of a setting as one reads it: lists and keys with their values in a line, what is deeper as JSON. */
export function told(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value);
  if (!isFlat(Object.values(value))) return JSON.stringify(value);
  if (Array.isArray(value)) return value.join(", ");
  return Object.entries(value).map(([key, one]) => `${key} ${one}`).join(", ");
}

function Pairs({ label, pairs }: { label: string; pairs: [string, unknown][] }) {
  if (pairs.length === 0) return null;
  return (
    <Box sx={{ minWidth: 0 }}>
      <Plain
        columns={[
          { title: label, left: true, cell: ([key]) => key },
          {
            title: "",
            left: true,
            cell: ([, value]) => <span style={{ whiteSpace: "pre-wrap", overflowWrap: "anywhere" }}>{told(value)}</span>,
          },
        ]}
        keyOf={([key]) => key}
        label={label}
        rows={pairs}
      />
    </Box>
  );
}

export function Tested({ report }: { report: Report }) {
  const { run } = report.now;
  const about: [string, unknown][] = [
    ["server", run.host],
    ["model", run.model],
    ["shape", run.shape ?? "plain users"],
    ["started", run.started],
    ["note", run.note],
    ...Object.entries(run.tags),
    ...Object.entries(run.seeds).map(([name, seed]): [string, unknown] => [`seed (${name})`, String(seed)]),
  ];
  const said = about.filter(([, value]) => value !== null && value !== "");
  return (
    <Row of={2}>
      <Box sx={{ display: "grid", gap: 1.5, alignContent: "start", minWidth: 0 }}>
        <Pairs label="Run" pairs={said} />
        <Pairs label="Server, seen before the load" pairs={Object.entries(report.server)} />
        {report.lengths.map((length, place) => (
          <Pairs key={place} label="How prompts got their length" pairs={Object.entries(length).filter(([, value]) => value !== "")} />
        ))}
        <Pairs label="Versions" pairs={Object.entries(run.versions)} />
      </Box>
      <Pairs label="Settings (secrets are masked)" pairs={Object.entries(report.settings)} />
    </Row>
  );
}

export function Formulas({ formulas }: { formulas: MetricFormula[] }) {
  return (
    <Plain
      columns={[
        { title: "Metric", left: true, cell: ({ title }) => title },
        { title: "Column", left: true, cell: ({ name }) => <code>{name}</code> },
        { title: "Unit", left: true, cell: ({ unit }) => unit },
        { title: "Formula", left: true, cell: ({ formula }) => <span style={{ whiteSpace: "normal" }}>{formula}</span> },
        { title: "Better", left: true, cell: ({ better }) => ({ low: "↓", high: "↑", none: "" })[better] },
      ]}
      keyOf={({ name }) => name}
      label="Formulas"
      rows={formulas}
    />
  );
}
