import { INVALID_TRACEID, SpanStatusCode, trace } from '@opentelemetry/api'

/** Spans by the OpenTelemetry API alone: whoever loads an SDK with `node --import` gets them, nobody else pays. */
export type Trace = <T>(
  name: string,
  attributes: Record<string, string>,
  work: () => T | Promise<T>,
) => T | Promise<T>

const tracer = trace.getTracer('mayfly')

/** Runs the work inside a span that ends with it, and says whether it failed; never with what. */
const inSpan: Trace = (name, attributes, work) =>
  tracer.startActiveSpan(name, { attributes }, async (span) => {
    try {
      return await work()
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR, message: error instanceof Error ? error.name : 'error' })
      throw error
    } finally {
      span.end()
    }
  })

/** Without an SDK, which must have been loaded before us, spans have no identity and are not made. */
const hasSdk = tracer.startSpan('probe').spanContext().traceId !== INVALID_TRACEID

export const traced: Trace = hasSdk ? inSpan : (_name, _attributes, work) => work()
