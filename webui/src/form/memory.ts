/** What was sent last: the form of the next run, and that of an edit, begin with it and not with the command line. */

const sent = new Map<string, string | boolean>();

/** The value that a field was sent with last, or what the master has given. */
export const remembered = <T>(name: string, given: T) => sent.get(name) ?? given;

/** Keep the values of all fields within an element. */
export function remember(fields: Element): void {
  for (const field of fields.querySelectorAll<HTMLInputElement | HTMLSelectElement>("input[name], select[name]")) {
    sent.set(field.name, field instanceof HTMLInputElement && field.type === "checkbox" ? field.checked : field.value);
  }
}
