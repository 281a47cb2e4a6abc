import Type from 'typebox'
import { BackendError } from '../domain/backend-error.ts'
import { guardedField, protectionField } from './kind.ts'

/** Fields of a configuration that many kinds have, with the marks that they need everywhere. */

/** PEM to trust instead of the system's authorities. */
export function caField(description: string) {
  return Type.Optional(Type.String(protectionField({ maxLength: 32_768, description })))
}

/** Permits loopback addresses. */
export function localField(description: string) {
  return Type.Boolean(guardedField(protectionField({ default: false, description }), false))
}

/**
 * For upstreams that can be reached without TLS (ADR 0041). The default is stored, so that a configuration that was stored before
 * there was this field is known by its absence.
 */
export function localUserField() {
  return Type.Optional(
    Type.String(
      guardedField(
        protectionField({
          default: '',
          pattern: '^([A-Za-z0-9_.][A-Za-z0-9_.-]{0,31})?$',
          description:
            'Account of this machine that runs the upstream, if that listens on a loopback address without TLS and is neither root nor an account of its package.',
        }),
        '',
      ),
    ),
  )
}

/** Throws `BackendError` (`misconfigured`) for an address that would show secrets on the way to another machine. */
export function requireHttps(field: string, url: string, local: boolean): void {
  requireConfig(
    local || url.startsWith('https:'),
    `"${field}" must begin with https:// unless "local" is true.`,
  )
}

/** For checks that no schema expresses. Throws `BackendError` (`misconfigured`); the message names the field. */
export function requireConfig(condition: boolean, message: string): void {
  if (!condition) throw new BackendError('misconfigured', message)
}
