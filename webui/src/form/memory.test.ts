import { expect, test } from "vitest";

import { remember, remembered } from "./memory";

test("a field begins with what was sent last, else with what the master has given", () => {
  expect([remembered("llmHold", null), remembered("llmInsecure", false)]).toEqual([null, false]);
  const form = document.createElement("form");
  form.innerHTML = `<input name="llmHold" value="5s"><input name="llmInsecure" type="checkbox" checked>
    <select name="llmStream"><option value="">default</option><option selected value="false">off</option></select>
    <input name="llmNote" value=""><input value="no field of ours">`;
  remember(form);
  expect(["llmHold", "llmInsecure", "llmStream", "llmNote", "llmModel"].map((name) => remembered(name, "given"))).toEqual([
    "5s",
    true,
    "false",
    "",
    "given",
  ]);
});
