/** The run in eight figures: large what stages.csv will say of the stage, small the last ten seconds. */

import { Box, Paper, Tooltip, Typography } from "@mui/material";
import type { ReactNode } from "react";

import type { Now } from "../live/types";
import { ABSENT, count, percent, threeDigits } from "../numbers";
import { Reasons, Validity } from "./Mark";
import { currentRow, reader, scheduled } from "./rows";

interface TileProps {
  title: string;
  unit: string;
  value: ReactNode;
  small: ReactNode;
  help?: string | undefined;
  /** Words that may take two lines. */
  words?: boolean;
}

/** One row on a wide screen: room goes to those that say most. */
const WIDE = [0.85, 0.85, 1.05, 1, 1.25, 1, 0.85, 1.1].map((share) => `minmax(0, ${String(share)}fr)`).join(" ");
/** Two figures of five digits are longer than a tile at its usual size. */
const LONG = 14;

const WORDS = { display: "-webkit-box", overflow: "hidden", WebkitBoxOrient: "vertical", WebkitLineClamp: "3", lineHeight: 1.35 };

function Tile({ title, unit, value, small, help, words = false }: TileProps) {
  return (
    <Tooltip title={help ?? ""}>
      <Paper aria-label={title} component="section" sx={{ px: 1.5, py: 1, minWidth: 0, overflow: "hidden" }}>
        <Typography color="text.secondary" noWrap sx={{ fontSize: 13 }}>
          {title}
          {unit && <span> · {unit}</span>}
        </Typography>
        <Typography component="div" data-part="value" noWrap sx={{ fontSize: typeof value === "string" && value.length > LONG ? 17 : 22, lineHeight: "32px", fontVariantNumeric: "tabular-nums" }}>
          {value}
        </Typography>
        <Typography color="text.secondary" component="div" data-part="small" noWrap={!words} sx={{ fontSize: 12, minHeight: 18, ...(words && WORDS) }}>
          {small}
        </Typography>
      </Paper>
    </Tooltip>
  );
}

export function Tiles({ now }: { now: Now }) {
  const row = currentRow(now);
  const read = reader(now.columns);
  const of = (column: string) => (row ? read(row, column) : null);
  const isOpen = of("load") === "open loop";
  const ttft = (statistic: string) => (isOpen ? scheduled(`ttft_ms_${statistic}`) : `ttft_ms_${statistic}`);
  const bound = isOpen && of("scheduled_lower_bounds") === 1 ? "≥" : "";
  const { recent } = now;
  const live = now.state === "running";
  const last = (text: string) => (live ? `last 10 s: ${text}` : "");
  const two = (one: string, other: string) => `${threeDigits(recent[one] ?? null)} / ${threeDigits(recent[other] ?? null)}`;
  const verdict = row?.verdict ?? now.total.verdict;
  return (
    <Box
      sx={{ display: "grid", gap: 1.5, gridTemplateColumns: { xs: "repeat(2, 1fr)", sm: "repeat(4, 1fr)", xl: WIDE } }}
    >
      <Tile
        help={now.formulas.output_tok_per_s?.formula}
        small={last(threeDigits(recent.output_tok_per_s ?? null))}
        title="Output"
        unit="tok/s"
        value={threeDigits(of("output_tok_per_s"))}
      />
      <Tile
        help={now.formulas.request_throughput_per_s?.formula}
        small={last(threeDigits(recent.ok_per_s ?? null))}
        title="OK requests"
        unit="req/s"
        value={threeDigits(of("request_throughput_per_s"))}
      />
      <Tile
        help={now.formulas.requests_failed?.formula}
        small={[percent(of("error_ratio")), last(`${threeDigits(recent.failed_per_s ?? null)}/s`)].filter(Boolean).join(" · ")}
        title="Failed"
        unit="req"
        value={count(of("requests_failed"))}
      />
      <Tile
        help={now.formulas.concurrency_mean?.formula}
        small={live ? `now: ${count(now.progress?.in_flight ?? null)} of ${count(now.progress?.users ?? null)} users` : ""}
        title="In flight"
        unit="req, mean"
        value={threeDigits(of("concurrency_mean"))}
      />
      <Tile
        help={isOpen ? "p50 / p99, from the scheduled start" : "p50 / p99, from the request's own start (closed loop)"}
        small={last(isOpen ? two("ttft_scheduled_ms_p50", "ttft_scheduled_ms_p99") : two("ttft_ms_p50", "ttft_ms_p99"))}
        title={isOpen ? "TTFT from schedule" : "TTFT"}
        unit="ms"
        value={["p50", "p99"].map((statistic) => `${bound}${threeDigits(of(ttft(statistic)))}`).join(" / ")}
      />
      <Tile
        help={now.formulas.tpot_ms_p50?.formula}
        small={last(two("tpot_ms_p50", "tpot_ms_p99"))}
        title="TPOT"
        unit="ms"
        value={`${threeDigits(of("tpot_ms_p50"))} / ${threeDigits(of("tpot_ms_p99"))}`}
      />
      <Tile
        help={now.formulas.goodput_per_s?.formula}
        small={typeof of("attainment_ratio") === "number" ? `${percent(of("attainment_ratio"))} attained` : "no objective per request"}
        title="Goodput"
        unit="req/s"
        value={threeDigits(of("goodput_per_s"))}
      />
      <Tile
        small={verdict?.reasons.length ? <Tooltip title={<Reasons lines={verdict.reasons} />}><span>{verdict.reasons[0]}</span></Tooltip> : ""}
        title="Measurement"
        words
        unit=""
        value={<Box sx={{ fontSize: 18, lineHeight: "32px" }}>{verdict ? <Validity verdict={verdict} /> : ABSENT}</Box>}
      />
    </Box>
  );
}
