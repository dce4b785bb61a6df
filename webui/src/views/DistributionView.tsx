/** The distributions tab: what a percentile hides, from a bounded sample of ok requests. */

import { Alert, Box, Paper, Typography } from "@mui/material";
import { useEffect, useState, type ReactNode } from "react";

import { Against, Cdf, E2E, INPUT, OUTPUT, TPOT, TTFT } from "../charts/Distributions";
import type { SampledStage } from "../live/types";
import { Look } from "./Look";
import { useDark } from "./useDark";

const REFRESH_MS = 5000;

function useSample(): SampledStage[] | null {
  const [stages, setStages] = useState<SampledStage[] | null>(null);
  useEffect(() => {
    let timer = 0;
    const abort = new AbortController();
    const refresh = async () => {
      try {
        const response = await fetch("llm/distributions", { signal: abort.signal });
        if (response.ok) setStages(((await response.json()) as { stages: SampledStage[] }).stages);
      } catch {
        if (abort.signal.aborted) return;
      }
      timer = window.setTimeout(() => void refresh(), REFRESH_MS);
    };
    void refresh();
    return () => {
      abort.abort();
      window.clearTimeout(timer);
    };
  }, []);
  return stages;
}

const Framed = ({ children }: { children: ReactNode }) => <Paper sx={{ p: 1.5, minWidth: 0 }}>{children}</Paper>;

export function DistributionCharts({ stages, dark }: { stages: SampledStage[]; dark: boolean }) {
  const kept = stages.reduce((sum, { requests }) => sum + requests.length, 0);
  const seen = stages.reduce((sum, stage) => sum + stage.seen, 0);
  return (
    <>
      <Typography color="text.secondary" sx={{ mb: 1.5 }} variant="body2">
        {kept === seen
          ? `All ${seen.toLocaleString("en-US")} ok requests of the measured windows.`
          : `An even sample: ${kept.toLocaleString("en-US")} of ${seen.toLocaleString("en-US")} ok requests of the measured windows.`}
        {" Latencies count from the schedule where there is one."}
      </Typography>
      <Box sx={{ display: "grid", gap: 1.5, gridTemplateColumns: { xs: "minmax(0, 1fr)", lg: "repeat(3, minmax(0, 1fr))" }, mb: 1.5 }}>
        <Framed>
          <Cdf dark={dark} place={TTFT} stages={stages} title="TTFT by stage" unit="ms" />
        </Framed>
        <Framed>
          <Cdf dark={dark} place={TPOT} stages={stages} title="TPOT by stage" unit="ms" />
        </Framed>
        <Framed>
          <Cdf dark={dark} place={E2E} stages={stages} title="E2E latency by stage" unit="ms" />
        </Framed>
      </Box>
      <Box sx={{ display: "grid", gap: 1.5, gridTemplateColumns: { xs: "minmax(0, 1fr)", lg: "repeat(2, minmax(0, 1fr))" } }}>
        <Framed>
          <Against dark={dark} stages={stages} title="TTFT against input length" x={INPUT} xName="input tokens" y={TTFT} />
        </Framed>
        <Framed>
          <Against dark={dark} stages={stages} title="E2E latency against output length" x={OUTPUT} xName="output tokens" y={E2E} />
        </Framed>
      </Box>
    </>
  );
}

export function DistributionView() {
  const stages = useSample();
  const dark = useDark();
  return (
    <Look>
      {stages !== null && stages.length === 0 && (
        <Alert severity="info">No ok request of a measured window has ended yet.</Alert>
      )}
      {stages !== null && stages.length > 0 && <DistributionCharts dark={dark} stages={stages} />}
    </Look>
  );
}
