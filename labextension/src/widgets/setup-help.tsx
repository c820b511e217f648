import React from 'react';

interface IHelpProps {
  onRetry: () => void;
}

/** What to do where the Jupyter server lacks our half. */
export function MissingHalfHelp({ onRetry }: IHelpProps): React.JSX.Element {
  return (
    <Help title="The server half is missing" onRetry={onRetry}>
      <p>
        This panel is GPU Workbench’s half in the browser. Its other half, in the Jupyter server,
        does not answer (404). Run this in the environment of the Jupyter server, then restart it:
      </p>
      <p>Where it is installed, but switched off:</p>
      <pre>jupyter server extension enable workbench.frontends.server</pre>
      <p>Where it is not installed:</p>
      <pre>pip install gpu-workbench</pre>
      <p>This lists what the server loads:</p>
      <pre>jupyter server extension list</pre>
    </Help>
  );
}

/** What to do where page and server have different versions. */
export function MismatchHelp({
  software,
  onRetry
}: IHelpProps & { software: string }): React.JSX.Element {
  return (
    <Help title="Two versions of GPU Workbench" onRetry={onRetry}>
      <p>
        The Jupyter server runs GPU Workbench {software}, and this page was loaded from another
        version. Reload the page. If this stays, restart the Jupyter server: it was started before
        the last update.
      </p>
      <button type="button" className="gw-button" onClick={() => window.location.reload()}>
        Reload the page
      </button>
    </Help>
  );
}

function Help(props: React.PropsWithChildren<IHelpProps & { title: string }>): React.JSX.Element {
  return (
    <div className="gw-panel gw-help" role="alert">
      <h2>{props.title}</h2>
      {props.children}
      <button type="button" className="gw-button" onClick={props.onRetry}>
        Try again
      </button>
    </div>
  );
}
