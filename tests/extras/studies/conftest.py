from tests.prediction_files import cases, write, write_case

__all__ = ["cases", "write", "write_case"]
