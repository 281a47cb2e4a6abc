import { Component, type ReactNode } from 'react'
import { ErrorNote } from '../ui/notes.tsx'

/** A room that fails does not take the frame with it. */
export class Boundary extends Component<{ readonly children: ReactNode }, { readonly error?: unknown }> {
  override state: { readonly error?: unknown } = {}
  static getDerivedStateFromError(error: unknown) {
    return { error }
  }
  override render() {
    if (this.state.error === undefined) return this.props.children
    return (
      <div className="p-4">
        <ErrorNote error={this.state.error} retry={() => location.reload()} />
      </div>
    )
  }
}
