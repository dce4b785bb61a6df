/** How our options are laid out in the form; the master says it in its page (llm_locust/plugin/form.py). */

export interface FormOption {
  flag: string;
  metavar: string;
  kind: "value" | "list" | "switch" | "flag";
  suggested: string[];
}

export interface FormLayout {
  groups: [string, string[]][];
  options: Record<string, FormOption>;
}

/** An option as Locust's page describes it. */
export interface ExtraOption {
  defaultValue?: string | number | boolean | null;
  helpText?: string | null;
  choices?: string[] | null;
  isSecret?: boolean;
  isRequired?: boolean;
  isMultiple?: boolean;
}

declare global {
  interface Window {
    templateArgs?: { llm?: FormLayout } & Record<string, unknown>;
  }
}

export const layout = (): FormLayout => window.templateArgs?.llm ?? { groups: [], options: {} };

/** Locust's page has names in camel case: llm_input_tokens is llmInputTokens. */
export const camel = (name: string) => name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

/** Splits "What it does. Default: 5 s." so that the default can stand where a value would. */
export function split(help: string): { text: string; fallback: string } {
  const found = /\s*Default: (.*?)\.?\s*$/.exec(help);
  return found ? { text: help.slice(0, found.index), fallback: found[1] ?? "" } : { text: help, fallback: "" };
}
