/** Stands in the place of Locust's list of custom parameters: ours in groups, those of the locustfile behind them. */

import ExpandMore from "@mui/icons-material/ExpandMore";
import { Accordion, AccordionDetails, AccordionSummary, Box, TextField, Typography } from "@mui/material";
import { Select } from "locust-ui";
import { useEffect, useRef } from "react";

import { Look } from "../views/Look";
import { Field } from "./Field";
import { camel, layout, type ExtraOption } from "./layout";
import { remember, remembered } from "./memory";

const OPEN_AT_FIRST = 3;

export function CustomParameters({ extraOptions }: { extraOptions: Record<string, ExtraOption> }) {
  const { groups, options } = layout();
  const ours = new Set(groups.flatMap(([, names]) => names.map(camel)));
  const others = Object.entries(extraOptions).filter(([name]) => !ours.has(name));
  const fields = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const form = fields.current?.closest("form");
    const keep = () => {
      if (fields.current) remember(fields.current);
    };
    form?.addEventListener("submit", keep, true);
    return () => form?.removeEventListener("submit", keep, true);
  }, []);
  return (
    <Look>
      <Box ref={fields} sx={{ "& .MuiAccordion-root:before": { display: "none" } }}>
        {groups.map(([title, names], place) => (
          <Accordion defaultExpanded={place < OPEN_AT_FIRST} disableGutters key={title}>
            <AccordionSummary expandIcon={<ExpandMore />}>
              <Typography>LLM: {title}</Typography>
            </AccordionSummary>
            <AccordionDetails>
              <Box sx={{ display: "grid", gap: 2, gridTemplateColumns: { xs: "1fr", sm: "1fr 1fr" }, alignItems: "start" }}>
                {names.map((name) => {
                  const [extra, option] = [extraOptions[camel(name)], options[name]];
                  return extra && option ? <Field extra={extra} key={name} name={camel(name)} option={option} /> : null;
                })}
              </Box>
            </AccordionDetails>
          </Accordion>
        ))}
        {others.length > 0 && (
          <Accordion disableGutters>
            <AccordionSummary expandIcon={<ExpandMore />}>
              <Typography>Custom parameters</Typography>
            </AccordionSummary>
            <AccordionDetails sx={{ display: "flex", flexDirection: "column", rowGap: 4 }}>
              {others.map(([name, extra]) => (
                <Other extra={extra} key={name} name={name} />
              ))}
            </AccordionDetails>
          </Accordion>
        )}
      </Box>
    </Look>
  );
}

const words = (name: string) => name.replace(/([a-z0-9])([A-Z])/g, "$1 $2").replace(/^./, (letter) => letter.toUpperCase());

/** An option that is not ours, as Locust shows it. */
function Other({ name, extra }: { name: string; extra: ExtraOption }) {
  const label = extra.helpText ? `${words(name)} (${extra.helpText})` : words(name);
  const given = extra.defaultValue ?? "";
  if (extra.choices) {
    const start = { defaultValue: String(given), multiple: extra.isMultiple ?? false, required: extra.isRequired ?? false };
    return <Select {...start} label={label} name={name} options={extra.choices} sx={{ width: "100%" }} />;
  }
  if (typeof given === "boolean") {
    return <Field extra={{ defaultValue: given, helpText: "" }} name={name} option={{ flag: label, metavar: "", kind: "flag", suggested: [] }} />;
  }
  return (
    <TextField
      defaultValue={remembered(name, given)}
      fullWidth
      label={label}
      name={name}
      required={extra.isRequired ?? false}
      type={extra.isSecret ? "password" : "text"}
    />
  );
}
