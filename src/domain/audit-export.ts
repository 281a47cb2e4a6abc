/** The forms in which the audit is exported. */
export const EXPORT_FORMATS = ['jsonl', 'csv'] as const
export type ExportFormat = (typeof EXPORT_FORMATS)[number]

/** One cell of CSV: a text that a spreadsheet would calculate is shown as text, and quoted where RFC 4180 asks for it. */
export function csvCell(value: string): string {
  // Tab and CR, too: programs skip them, and calculate what follows.
  const shown = /^[=+\-@\t\r\n]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(shown) || shown !== value ? `"${shown.replaceAll('"', '""')}"` : shown
}

/** One line of CSV (RFC 4180): lists of texts are joined by spaces, other objects are JSON, null is empty. */
export function csvLine(values: readonly unknown[]): string {
  return `${values.map((value) => csvCell(textOf(value))).join(',')}\r\n`
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (typeof value !== 'object') return String(value)
  return Array.isArray(value) && value.every((one) => typeof one === 'string')
    ? value.join(' ')
    : JSON.stringify(value)
}
