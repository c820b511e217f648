import { ReactWidget } from '@jupyterlab/ui-components';
import React from 'react';

import { gpuAnswer } from '../model/gpus';
import type { ILab } from '../tokens';
import { gpuIcon } from './icons';

/** The status bar's answer to "is there a GPU for me?"; a click shows the sidebar. */
export class GpuStatusItem extends ReactWidget {
  constructor(
    private readonly lab: ILab,
    private readonly onOpen: () => void
  ) {
    super();
    this.addClass('gw-status-item');
    lab.changed.connect(() => this.update());
  }

  protected override render(): React.JSX.Element {
    const { text, title } = gpuAnswer(this.lab.status, this.lab.failure, this.lab.link);
    return (
      <button type="button" className="gw-status-button" title={title} onClick={this.onOpen}>
        <gpuIcon.react tag="span" className="gw-status-icon" />
        <span>{text}</span>
      </button>
    );
  }
}
