import { parseJson } from '../../domain/formats/json.ts'
import { usage } from '../frame/failure.ts'
import type { KindField } from './fields.ts'

/**
 * Converts what was typed or read to the type of the field; the server validates it. Throws `CliError` (usage), which
 * does not repeat the value.
 */
export function readValue(field: KindField, raw: unknown, said: string): unknown {
  if (field.choices !== undefined && !field.choices.includes(String(raw)))
    throw usage(`${said} must be one of ${field.choices.join(', ')}.`)
  switch (field.type) {
    case 'text':
      return String(raw)
    case 'boolean':
      return typeof raw === 'boolean' ? raw : yesOrNo(String(raw), said)
    case 'integer':
    case 'number':
      return numberOf(String(raw), field.type, said)
    case 'list':
      return Array.isArray(raw) ? raw : [String(raw)]
    case 'text or list':
      return Array.isArray(raw) && raw.length === 1 ? raw[0] : raw
    case 'json':
      return jsonOf(String(raw), said)
  }
}

function numberOf(text: string, type: 'integer' | 'number', said: string): number {
  const form = type === 'integer' ? /^-?\d{1,15}$/ : /^-?\d{1,15}(?:\.\d{1,15})?$/
  if (form.test(text.trim())) return Number(text)
  throw usage(`${said} must be a${type === 'integer' ? ' whole' : ''} number.`)
}

function yesOrNo(text: string, said: string): boolean {
  if (/^(?:y|yes|true)$/i.test(text)) return true
  if (/^(?:n|no|false)$/i.test(text)) return false
  throw usage(`${said} must be y or n.`)
}

function jsonOf(text: string, said: string): unknown {
  const value = parseJson(text)
  if (value !== undefined) return value
  throw usage(`${said} is not valid JSON.`, 'Quote it for the shell, or put it in a file and use --config.')
}
