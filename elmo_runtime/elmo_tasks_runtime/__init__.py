"""Uses what `elmo-tasks export` has written: ELMo's vectors and taggers, with numpy and onnxruntime only."""

from elmo_tasks_runtime.model import Model as Model

__version__ = "0.1.0"
