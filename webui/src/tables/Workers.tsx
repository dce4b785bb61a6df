/** Who sends the requests, and how well each keeps time. */

import { Box } from "@mui/material";

import type { WorkerNow } from "../live/types";
import { count, threeDigits } from "../numbers";
import { Plain } from "./Plain";

const LATE_MS = 5;
const BUSY_PERCENT = 90;

function Warned({ text, bad }: { text: string; bad: boolean }) {
  return bad ? (
    <Box component="span" sx={{ color: "error.main", fontWeight: 600 }}>
      ! {text}
    </Box>
  ) : (
    <>{text}</>
  );
}

export function WorkerTable({ workers }: { workers: WorkerNow[] }) {
  return (
    <Plain
      columns={[
        { title: "Worker", left: true, cell: ({ worker }) => worker },
        { title: "Host", left: true, cell: ({ host }) => host },
        { title: "Users", cell: ({ users }) => count(users) },
        { title: "In flight", unit: "req", cell: ({ in_flight }) => count(in_flight) },
        { title: "Output", unit: "tok/s", cell: ({ output_tok_per_s }) => threeDigits(output_tok_per_s) },
        {
          title: "Loop lag p99",
          unit: "ms",
          help: "By how much a periodic timer of the event loop is late",
          cell: ({ loop_lag_p99_ms: lag, timestamp_source }) => (
            <Warned bad={lag !== null && lag > LATE_MS && timestamp_source !== "kernel"} text={threeDigits(lag)} />
          ),
        },
        {
          title: "CPU",
          unit: "% of a core",
          cell: ({ cpu_percent: cpu }) => <Warned bad={cpu !== null && cpu > BUSY_PERCENT} text={threeDigits(cpu)} />,
        },
        { title: "Clock offset", unit: "ms", cell: ({ clock_offset_ms }) => threeDigits(clock_offset_ms) },
        { title: "Timestamps", left: true, cell: ({ timestamp_source }) => timestamp_source },
        {
          title: "Last report",
          left: true,
          cell: ({ report_age_s: age, lost }) => (
            <Warned bad={lost} text={lost ? "lost" : age === null ? "this process" : `${threeDigits(age)} s ago`} />
          ),
        },
      ]}
      dimmed={({ lost }) => lost}
      empty="No worker has reported yet."
      keyOf={({ worker }) => worker}
      label="LLM workers"
      rows={workers}
    />
  );
}
