/** Locust's own page with our tabs in front of its own. */

import { GlobalStyles } from "@mui/material";
import LocustUi, { baseTabs, locustStore, type IRootState, type ITab } from "locust-ui";
import { createRoot } from "react-dom/client";

import { DistributionView } from "./views/DistributionView";
import { LiveView } from "./views/LiveView";

const STYLES = {
  // A message of several sentences has them on lines of their own.
  ".MuiAlert-message": { whiteSpace: "pre-line", overflowWrap: "anywhere" },
  // A master's tabs fit into 1280 pixels beside the arrows of their bar: those may come while the page is built, and
  // they stay where they themselves leave too little room.
  "button.MuiTab-root": { minWidth: 0, paddingInline: 11 },
} as const;

const OURS: ITab[] = [
  { title: "LLM", key: "llm", component: LiveView },
  { title: "LLM distributions", key: "llm-distributions", component: DistributionView },
];

function App() {
  // What a locustfile has put into Locust's page stays in it.
  const { extendedTabs, extendedTables, extendedCsvFiles } = (locustStore.getState() as unknown as IRootState).swarm;
  return (
    <>
      <GlobalStyles styles={STYLES} />
      <LocustUi
        {...(extendedTables && { extendedTables: extendedTables as never })}
        {...(extendedCsvFiles && { extendedReports: extendedCsvFiles })}
        tabs={[...OURS, ...baseTabs, ...(extendedTabs ?? [])]}
      />
    </>
  );
}

const root = document.getElementById("root");
if (root) createRoot(root).render(<App />);
