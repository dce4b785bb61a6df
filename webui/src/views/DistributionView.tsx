/** The distributions tab: what a percentile hides, from a bounded sample of ok requests. */

import { Alert, Box, Typography } from "@mui/material";
import { useEffect, useState } from "react";

import { Against, Cdf, E2E, INPUT, OUTPUT, TPOT, TTFT } from "../charts/Distributions";
import { Framed, Row } from "../charts/Frame";
import { StageKey } from "../charts/StageKey";
import { askEvery } from "../live/ask";
import type { SampledStage } from "../live/types";
import { Look } from "./Look";
import { useDark } from "./useDark";

const REFRESH_MS = 5000;

function useSample(): SampledStage[] | null {
  const [stages, setStages] = useState<SampledStage[] | null>(null);
  useEffect(() => {
    const ask = async (signal: AbortSignal) => {
      const response = await fetch("llm/distributions", { signal });
      if (response.ok) setStages(((await response.json()) as { stages: SampledStage[] }).stages);
    };
    // The live tab says so when the master does not answer.
    return askEvery(REFRESH_MS, ask, () => undefined);
  }, []);
  return stages;
}

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
      <StageKey dark={dark} stages={stages} />
      <Box className="keyed" sx={{ display: "grid", gap: 1.5 }}>
        <Row of={3}>
          <Framed>
            <Cdf dark={dark} place={TTFT} stages={stages} title="TTFT by stage" />
          </Framed>
          <Framed>
            <Cdf dark={dark} place={TPOT} stages={stages} title="TPOT by stage" />
          </Framed>
          <Framed>
            <Cdf dark={dark} place={E2E} stages={stages} title="E2E latency by stage" />
          </Framed>
        </Row>
        <Row of={2}>
          <Framed>
            <Against dark={dark} stages={stages} title="TTFT against input length" x={INPUT} xName="input tokens" y={TTFT} />
          </Framed>
          <Framed>
            <Against dark={dark} stages={stages} title="E2E latency against output length" x={OUTPUT} xName="output tokens" y={E2E} />
          </Framed>
        </Row>
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
