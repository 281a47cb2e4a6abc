import Type from 'typebox'
import { BackendError, guardedField, protectionField } from './kind.ts'

/** Fields of a configuration that many kinds have, with the marks that they need everywhere. */

/** PEM to trust instead of the system's authorities. */
export function caField(description: string) {
  return Type.Optional(Type.String(protectionField({ maxLength: 32_768, description })))
}

/** Permits loopback addresses. */
export function localField(description: string) {
  return Type.Boolean(guardedField(protectionField({ default: false, description }), false))
}

/** For checks that no schema expresses. Throws `BackendError` (`misconfigured`); the message names the field. */
export function requireConfig(condition: boolean, message: string): void {
  if (!condition) throw new BackendError('misconfigured', message)
}
