/** The LLM tab: the run as it goes. */

import { Alert, FormControlLabel, Switch } from "@mui/material";
import { useState } from "react";

import { Charts } from "../charts/Charts";
import { useLive } from "../live/useLive";
import { FailureTable, OutcomeTable } from "../tables/Outcomes";
import { StageTable } from "../tables/StageTable";
import { Tiles } from "../tables/Tiles";
import { WorkerTable } from "../tables/Workers";
import { Downloads } from "./Downloads";
import { Look } from "./Look";
import { RunLine } from "./RunLine";
import { Section } from "./Section";
import { useDark } from "./useDark";

export function LiveView() {
  const { now, history, problem, asked } = useLive();
  const dark = useDark();
  const [withExcluded, setWithExcluded] = useState(false);
  return (
    <Look>
      {problem !== null && (
        <Alert severity="warning" sx={{ mb: 2 }}>
          The numbers below are not fresh: {problem}.
        </Alert>
      )}
      {asked && now === null && <Alert severity="info">No run yet. Start one, and its numbers appear here.</Alert>}
      {now !== null && (
        <>
          <RunLine now={now} />
          <Tiles now={now} />
          <Section title="Stages">
            <StageTable now={now} withExcluded={withExcluded} />
            {now.excluded.length > 0 && (
              <FormControlLabel
                control={<Switch checked={withExcluded} onChange={(_, on) => { setWithExcluded(on); }} size="small" />}
                label="with warm-up and ramp"
                slotProps={{ typography: { variant: "body2" } }}
                sx={{ ml: 0 }}
              />
            )}
          </Section>
          {history !== null && history.points.length > 0 && (
            <Section title="Over time">
              <Charts dark={dark} history={history} />
            </Section>
          )}
          <Section title="Outcomes">
            <OutcomeTable now={now} />
          </Section>
          {now.failures.length > 0 && (
            <Section title="Failures, all phases">
              <FailureTable failures={now.failures} />
            </Section>
          )}
          <Section title="Workers">
            <WorkerTable workers={now.workers} />
          </Section>
          <Section title="Files of this run">
            <Downloads state={`${now.run.run_id} ${now.state}`} />
          </Section>
        </>
      )}
    </Look>
  );
}
