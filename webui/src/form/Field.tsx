/** One option as a field: its flag as label, what it does below, its default where a value would stand. */

import { Autocomplete, Checkbox, FormControlLabel, FormHelperText, MenuItem, TextField } from "@mui/material";

import { split, type ExtraOption, type FormOption } from "./layout";
import { remembered } from "./memory";

interface FieldProps {
  name: string;
  extra: ExtraOption;
  option: FormOption;
}

const SPELT: Record<string, string> = { slo: "SLO", eos: "EOS", ca: "CA", gpu: "GPU" };

/** `--llm-ignore-eos` is shown as "Ignore EOS". */
export function title(flag: string): string {
  const words = flag.replace(/^--llm-/, "").split("-").map((word) => SPELT[word] ?? word);
  return words.join(" ").replace(/^./, (letter) => letter.toUpperCase());
}

/** A default that is longer than its field stands below it. */
const MOST_IN_FIELD = 44;

const SWITCH_WORDS: Record<string, string> = { "": "default", true: "on", false: "off" };

export function Field({ name, extra, option }: FieldProps) {
  const { text, fallback } = split(extra.helpText ?? "");
  const given = remembered(name, extra.defaultValue ?? "");
  const label = title(option.flag);
  if (option.kind === "flag") {
    return (
      <div>
        <FormControlLabel control={<Checkbox defaultChecked={given === true} name={name} size="small" />} label={label} />
        <FormHelperText sx={{ mt: -0.5 }}>{text}</FormHelperText>
      </div>
    );
  }
  const common = {
    fullWidth: true,
    helperText: fallback.length > MOST_IN_FIELD ? `${text} Default: ${fallback}.` : text,
    label,
    name,
    size: "small" as const,
    slotProps: { inputLabel: { shrink: true } },
  };
  if (option.kind === "switch") {
    return (
      <TextField
        {...common}
        defaultValue={String(given)}
        helperText={`${text} Default: ${fallback}.`}
        select
        slotProps={{ ...common.slotProps, select: { native: true } }}
      >
        {Object.entries(SWITCH_WORDS).map(([value, word]) => (
          <option key={value} value={value}>
            {word}
          </option>
        ))}
      </TextField>
    );
  }
  const placeholder = fallback && fallback.length <= MOST_IN_FIELD ? fallback : option.metavar;
  if (option.suggested.length > 0) {
    return (
      <Autocomplete
        defaultValue={String(given)}
        freeSolo
        openOnFocus
        options={option.suggested}
        renderInput={(params) => (
          <TextField
            {...params}
            {...common}
            placeholder={placeholder}
            slotProps={{ inputLabel: { ...params.InputLabelProps, shrink: true } }}
          />
        )}
        renderOption={({ key, ...props }, choice) => (
          <MenuItem key={key} {...props}>
            {choice}
          </MenuItem>
        )}
        size="small"
      />
    );
  }
  return <TextField {...common} defaultValue={String(given)} placeholder={placeholder} />;
}
